"""Health, for those who watch the service (contract §4)."""

from msgspec import Struct

from .. import __version__
from ..errors import DatabaseError, Unavailable
from ..postgres.database import Database
from ..storage import schema


class Alive(Struct, frozen=True):
    """The process answers."""

    version: str
    status: str = "ok"


class Ready(Struct, frozen=True):
    """The process can do its work."""

    status: str = "ready"


class Health:
    """Liveness, which waits for nothing, and readiness, which is true."""

    def __init__(self, *, database: Database, schema_number: int) -> None:
        self._database = database
        self._schema_number = schema_number

    async def live(self) -> Struct:
        """Say that the process runs, whatever else is wrong."""
        return Alive(__version__)

    async def ready(self) -> Struct:
        """Say whether the database answers and its schema is at least this build's."""
        try:
            latest = await self._database.autocommit(schema.latest)
        except DatabaseError:
            raise Unavailable from None
        if latest < self._schema_number:
            raise Unavailable
        return Ready()
