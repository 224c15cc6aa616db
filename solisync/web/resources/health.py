"""Liveness and readiness, for supervisors and load balancers (docs/operations.md "Health")."""

from typing import ClassVar

from msgspec import Struct
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.logger import Logger

from ... import __version__
from ...errors import DatabaseError, Unavailable
from ...postgres.database import Database
from ...process.tasks import detached, shielded
from ...rules.shapes import Alive, Features, Ready
from ...storage import schema
from ..route import get
from ..wire.reply import Reply

EVERY_SECONDS = 1.0  # seconds between two probes, at least
ANSWER_SECONDS = 2.5  # limit of a probe; a commit that waits for a standby may never end


class Health:
    """Liveness, which waits for nothing, and readiness, which commits to the database.

    Only a commit proves that the database accepts writes: a primary that waits for a frozen standby still answers
    reads. All requests share one probe, whose result is valid for EVERY_SECONDS from its start.
    """

    tag: ClassVar[str] = "health"

    _log = Logger()

    def __init__(self, *, features: Features, database: Database, schema_number: int, reactor: ReactorBase) -> None:
        self._alive = Reply.of(Alive(__version__, features))
        self._database = database
        self._schema_number = schema_number
        self._reactor = reactor
        self._began = 0.0
        self._probe: Deferred[bool] | None = None  # the latest one

    @get("/api/health", summary="Report that the process is alive", answer=Alive, alias="/health")
    async def live(self) -> Reply:
        """Answer, even if the database is down."""
        return self._alive

    @get("/api/health/ready", summary="Report whether the service can work", answer=Ready, alias="/health/ready")
    async def ready(self) -> Struct:
        """Raise Unavailable unless the database commits within ANSWER_SECONDS and has this version's schema."""
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
            self._log.failure("the check of readiness failed for an unforeseen reason")
            return False
