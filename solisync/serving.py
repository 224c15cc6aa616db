"""The start and the stop of the service in one process."""

import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from twisted.internet.defer import Deferred, TimeoutError, gatherResults
from twisted.internet.task import deferLater
from twisted.logger import Logger

from .checking.queue_worker import Checking
from .embedded.marks import record_use
from .embedded.server import EmbeddedPostgres
from .errors import ConnectionFailed, Declined, TransactionAborted
from .housekeeping import Housekeeping
from .postgres.migrate import Migration, migrate
from .process import listening
from .process.daemon import Daemon
from .process.logs import Reasons
from .process.metrics import Sampler
from .process.tasks import shielded
from .web.process_parts import Parts
from .web.wire.site import Site

DATABASE_STOP_SECONDS = 2.0  # for transactions that still run; part of the supervisor's STOP_MARGIN_SECONDS
CHECKING_STOP_SECONDS = 1.0  # after requests are drained, for a slow database; part of the margin too
HISTORY_STOP_SECONDS = 1.0  # for the last events of accounts; part of the margin too
QUIET_SECONDS = 3.0  # a start logs an unreachable database after this


@dataclass(kw_only=True, eq=False)
class Solisync(Daemon):
    """The running service in one process; `make_service` explains the fields below `admin_site`."""

    _log = Logger()

    parts: Parts
    embedded: EmbeddedPostgres | None
    migrations: tuple[Migration, ...]
    housekeeping: Housekeeping
    checking: Checking
    sampler: Sampler
    site: Site
    admin_site: Site | None
    uid: int | None
    inherited: socket.socket | None
    admin_inherited: socket.socket | None
    when_open: Callable[[], None]
    quiet_seconds: float

    def __post_init__(self) -> None:
        super().__init__(self.parts.reactor)

    @property
    def _data_dir(self) -> Path | None:
        return None if self.embedded is None else self.embedded.data_dir

    def privilegedStartService(self) -> None:
        """Claim the data directory and open the port, which may need root. Raises FatalError."""
        super().privilegedStartService()
        if self.embedded is not None:
            self.embedded.claim(self.uid)
        self._port = listening.listen(self._reactor, self.parts.settings.listen, self.site, inherited=self.inherited)
        public = bool(self.parts.settings.admin_hosts)
        self._listen_for_admins(
            self.parts.settings.admin_listen, self.admin_site, public=public, inherited=self.admin_inherited
        )
        self._listen_for_scrapes(self.parts.settings.metrics_listen, self.parts.metrics.exposition, self._data_dir)
        if self.inherited is None:
            record_use(self.parts.settings.data_dir, self.parts.settings.database_url)

    def startService(self) -> None:
        """Begin to open the database; until it is open, requests get a 503."""
        super().startService()
        if self.inherited is None:
            self._log_start("", self.parts.settings.listen, self._data_dir)
            self._on_hangup(self._reload)
        self.sampler.start()
        Deferred.fromCoroutine(self._open()).addErrback(self._give_up)

    def give_way(self, gives_way: bool) -> None:
        """Leave new connections to other workers, unless these are slow to accept; or accept normally again."""
        cast(listening.Acceptor, self._port).gives_way = gives_way

    def _reload(self) -> None:
        self.manager.reloading()
        if not self._read_certificates():
            self._log.warn("ignored SIGHUP: only a service with workers can reload (--workers 2 or more)")
        self.manager.ready("serving; only a service with workers can reload more than certificates")

    async def _stop(self) -> None:
        """Stop accepting, let running requests end for up to `stop_seconds`, then close the database."""
        self.housekeeping.stop()
        checking = Deferred.fromCoroutine(self.checking.stop())
        self.sampler.stop()
        streams_ended = Deferred.fromCoroutine(self.parts.live_streams.stop())
        sites = [self.site] if self.admin_site is None else [self.site, self.admin_site]
        for site in sites:
            site.connections.announce_end()
        for port in (self._port, self._admin_port):
            if port is not None:
                await listening.stop(self._reactor, port)
        await streams_ended
        drained = [Deferred.fromCoroutine(site.connections.drain(self.parts.settings.stop_seconds)) for site in sites]
        await gatherResults(drained)
        self.parts.timelines.stop()
        with suppress(TimeoutError):
            await shielded(checking).addTimeout(CHECKING_STOP_SECONDS, self._reactor)
        await self.parts.history.stop(HISTORY_STOP_SECONDS)
        await self.parts.bus.close()
        await self.parts.database.close(DATABASE_STOP_SECONDS)
        if self.embedded is not None:
            await self.embedded.stop()
        await self._stop_listening_for_scrapes()
        # The reactor may still hold events of closed sockets: it would deliver them to new sockets of the same numbers.
        await deferLater(self._reactor, 0)
        self._log.info("stopped")

    async def _open(self) -> None:
        """Start the embedded database, migrate, and fill the pool; keep trying while the database is unreachable.

        A migration of another node may take any time.
        """
        dsn = self.parts.settings.database_url
        if self.embedded is not None:
            await self.embedded.start()
            dsn = self.embedded.dsn
        assert dsn is not None
        reasons, quiet_until = Reasons(), self._reactor.seconds() + self.quiet_seconds
        while not self._stopping:
            try:
                await migrate(self._reactor, dsn, self.migrations)
                break
            except (ConnectionFailed, TransactionAborted, Declined) as error:
                if self._reactor.seconds() > quiet_until and reasons.is_new(str(error)):
                    self._log.warn("waiting for the database: {error}", error=error)
                    self.manager.status(f"waiting for the database: {error}")
                await deferLater(self._reactor, self.parts.database.pool.times.reconnect)
        if not self._stopping:
            self.parts.database.open(dsn)
            self.parts.bus.open(self.parts.settings.bus_database_url or dsn)
            self.parts.live_streams.start()
            self.housekeeping.start()
            self.parts.history.start()
            self.checking.start()
            self._log.info("the database is open")
            self.manager.ready("serving")
            self.when_open()
