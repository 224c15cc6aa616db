"""Liveness and readiness, for supervisors and load balancers (docs/operations.md "Health")."""

from typing import ClassVar

from msgspec import Struct
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.logger import Logger

from ... import __version__
from ...errors import DatabaseError, Unavailable
from ...postgres.database import Database
from ...process.shielded import detached, shielded
from ...rules.shapes import Alive, Features, Ready
from ...storage import schema
from ..route import get
from ..wire.reply import Reply

EVERY_SECONDS = 1.0  # how often to probe, at most
ANSWER_SECONDS = 2.5  # how long a probe may take; a commit that waits for a standby may take for ever


class Health:
    """Liveness, which waits for nothing, and readiness, which commits something to the database.

    Only a commit tells whether the database takes writes: one that waits for a standby that is frozen still answers
    whatever is read. All requests share one probe, whose outcome stands for EVERY_SECONDS from its beginning.
    """

    tag: ClassVar[str] = "health"

    _log = Logger()

    def __init__(self, *, features: Features, database: Database, schema_number: int, reactor: ReactorBase) -> None:
        self._alive = Reply.of(Alive(__version__, features))
        self._database = database
        self._schema_number = schema_number
        self._reactor = reactor
        self._began = 0.0
        self._probe: Deferred[bool] | None = None  # the latest

    @get("/api/health", summary="Report that the process is alive", answer=Alive, alias="/health")
    async def live(self) -> Reply:
        """Answer, whatever else is wrong."""
        return self._alive

    @get("/api/health/ready", summary="Report whether the service can work", answer=Ready, alias="/health/ready")
    async def ready(self) -> Struct:
        """Raise Unavailable unless the database commits within ANSWER_SECONDS, and has the schema of this version."""
        now = self._reactor.seconds()
        probe = self._probe
        if probe is None or (probe.called and now >= self._began + EVERY_SECONDS):
            self._began = now
            probe = self._probe = detached(self._commits())
        left = self._began + ANSWER_SECONDS - now
        if not probe.called and left > 0:
            try:
                await shielded(probe).addTimeout(left, self._reactor)
            except TimeoutError:
                raise Unavailable from None
        if not probe.called or not probe.result:
            raise Unavailable
        return Ready()

    async def _commits(self) -> bool:
        try:
            return await self._database.run(schema.lock_latest) >= self._schema_number
        except (DatabaseError, Unavailable):
            return False
        except Exception:
            self._log.failure("a probe failed for an unforeseen reason")
            return False
