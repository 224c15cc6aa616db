"""Liveness and readiness, for supervisors and load balancers (docs/operations.md "Health")."""

from msgspec import Struct

from .. import __version__
from ..errors import DatabaseError, Unavailable
from ..postgres.database import Database
from ..rules.health import Alive, Ready
from ..storage import schema


class Health:
    """Liveness, which waits for nothing, and readiness, which asks the database."""

    def __init__(self, *, database: Database, schema_number: int) -> None:
        self._database = database
        self._schema_number = schema_number

    async def live(self) -> Struct:
        """Answer, whatever else is wrong."""
        return Alive(__version__)

    async def ready(self) -> Struct:
        """Raise Unavailable unless the database answers and its schema is at least the one of this version."""
        try:
            latest = await self._database.autocommit(schema.latest)
        except DatabaseError:
            raise Unavailable from None
        if latest < self._schema_number:
            raise Unavailable
        return Ready()
