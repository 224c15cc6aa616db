"""The live events of a process: its bus and its streams."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from twisted.internet.base import ReactorBase
from twisted.logger import Logger

from ..postgres import TIMES, PoolTimes
from ..postgres.database import Database
from ..process.metrics import Metrics
from .bus import Bus
from .live_errors import LiveErrors
from .streams import Streams, raise_limit, room_for_streams


class LiveSettings(Protocol):
    """The settings that concern live events, of solisync.settings.settings.ServingSettings."""

    @property
    def streams(self) -> int:
        """How many streams there may be."""

    @property
    def bus_database_url(self) -> str | None:
        """Where LISTEN works, unless that is the database itself."""

    @property
    def prepared_statements(self) -> bool:
        """Off for a pooler that shares connections."""


class Live:
    """A bus, and as many streams as the settings and the limit of open files allow."""

    _log = Logger()

    def __init__(
        self,
        settings: LiveSettings,
        reactor: ReactorBase,
        *,
        database: Database,
        metrics: Metrics,
        now: Callable[[], datetime],
        times: PoolTimes = TIMES,
    ) -> None:
        self._wanted = settings.streams
        self._bus_dsn = settings.bus_database_url
        shared_pooler = settings.bus_database_url is None and not settings.prepared_statements
        errors = LiveErrors(reactor=reactor, metrics=metrics)
        self.bus = Bus(reactor=reactor, metrics=metrics, errors=errors, shared_pooler=shared_pooler, times=times)
        most = room_for_streams(settings.streams, raise_limit())
        self.streams = Streams(
            reactor=reactor, database=database, bus=self.bus, metrics=metrics, errors=errors, most=most, now=now
        )

    def start(self, dsn: str) -> None:
        """Begin, with the database there unless the bus has one of its own."""
        if self.streams.most < self._wanted:
            self._log.warn(
                "at most {most} streams, not {wanted}: raise the limit of open files (LimitNOFILE, ulimit -n)",
                most=self.streams.most,
                wanted=self._wanted,
            )
        self.bus.open(self._bus_dsn or dsn)
        self.streams.start()

    async def end_streams(self) -> None:
        """End all streams; notices still go out."""
        await self.streams.stop()

    async def stop(self) -> None:
        """Leave the bus, once it has told what it still had to."""
        await self.bus.close()
