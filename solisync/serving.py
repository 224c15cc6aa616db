"""The service in one process: its start and its stop."""

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError, gatherResults
from twisted.internet.task import deferLater
from twisted.logger import Logger

from .checking.queue_worker import Checking
from .checking.timelines import Timelines
from .embedded.data_directory import record_use
from .embedded.server import EmbeddedPostgres
from .errors import ConnectionFailed, Declined, TransactionAborted
from .events.live import Live
from .housekeeping import Housekeeping
from .players.history import History
from .postgres.database import Database
from .postgres.migrate import Migration, migrate
from .process import listening
from .process.daemon import Daemon
from .process.logs import Reasons
from .process.metrics import Metrics, Sampler
from .process.shielded import shielded
from .settings.settings import ServingSettings
from .web.wire.site import Site

DATABASE_STOP_SECONDS = 2.0  # for transactions that still run at a stop; part of the supervisor's STOP_MARGIN_SECONDS
CHECKING_STOP_SECONDS = 1.0  # beyond the draining of requests, for a database that is slow to answer; likewise a part
HISTORY_STOP_SECONDS = 1.0  # for the last events of accounts; likewise
QUIET_SECONDS = 3.0  # how long the database may be unreachable at a start before that is logged


class Solisync(Daemon):
    """The running service in one process."""

    _log = Logger()

    def __init__(
        self,
        *,
        settings: ServingSettings,
        reactor: ReactorBase,
        uid: int | None,
        inherited: socket.socket | None,
        admin_inherited: socket.socket | None,
        when_open: Callable[[], None],
        quiet_seconds: float,
        embedded: EmbeddedPostgres | None,
        migrations: tuple[Migration, ...],
        database: Database,
        housekeeping: Housekeeping,
        history: History,
        checking: Checking,
        timelines: Timelines,
        live: Live,
        site: Site,
        admin_site: Site | None,
        metrics: Metrics,
        sampler: Sampler,
    ) -> None:
        super().__init__(reactor)
        self._settings = settings
        self._uid = uid
        self._inherited = inherited
        self._admin_inherited = admin_inherited
        self._when_open = when_open
        self._quiet_seconds = quiet_seconds
        self._embedded = embedded
        self._migrations = migrations
        self._database = database
        self._housekeeping = housekeeping
        self._history = history
        self._checking = checking
        self._timelines = timelines
        self._live = live
        self._site = site
        self._admin_site = admin_site
        self._metrics = metrics
        self._sampler = sampler

    def privilegedStartService(self) -> None:
        """Take what may need root: the data directory and the port. Raises FatalError."""
        super().privilegedStartService()
        if self._embedded is not None:
            self._embedded.claim(self._uid)
        self._port = listening.listen(self._reactor, self._settings.listen, self._site, inherited=self._inherited)
        public = bool(self._settings.admin_hosts)
        self._listen_for_admins(
            self._settings.admin_listen, self._admin_site, public=public, inherited=self._admin_inherited
        )
        self._listen_for_scrapes(self._settings.metrics_listen, self._metrics.exposition)
        if self._inherited is None:
            record_use(self._settings.data_dir, self._settings.database_url)

    def startService(self) -> None:
        """Begin to open the database; requests are answered with 503 until that is done."""
        super().startService()
        if self._inherited is None:
            self._log_start("", self._settings.listen, None if self._embedded is None else self._embedded.data_dir)
            self._on_hangup(self._explain_reload)
        self._sampler.start()
        Deferred.fromCoroutine(self._open()).addErrback(self._give_up)

    def give_way(self, gives_way: bool) -> None:
        """Leave connections to other workers, as far as they accept them soon; or take part again."""
        cast(listening.Acceptor, self._port).gives_way = gives_way

    def _explain_reload(self) -> None:
        self._log.warn("ignored SIGHUP: only a service with workers can reload (--workers 2 or more)")

    async def _stop(self) -> None:
        """Stop accepting, let running requests end for up to `stop_seconds`, then close the database."""
        self._housekeeping.stop()
        checking = Deferred.fromCoroutine(self._checking.stop())
        self._sampler.stop()
        streams_ended = Deferred.fromCoroutine(self._live.end_streams())
        sites = [self._site] if self._admin_site is None else [self._site, self._admin_site]
        for site in sites:
            site.connections.announce_end()
        for port in (self._port, self._admin_port):
            if port is not None:
                await listening.stop(self._reactor, port)
        await streams_ended
        drained = [Deferred.fromCoroutine(site.connections.drain(self._settings.stop_seconds)) for site in sites]
        await gatherResults(drained)
        self._timelines.stop()
        with suppress(TimeoutError):
            await shielded(checking).addTimeout(CHECKING_STOP_SECONDS, self._reactor)
        await self._history.stop(HISTORY_STOP_SECONDS)
        await self._live.stop()
        await self._database.close(DATABASE_STOP_SECONDS)
        if self._embedded is not None:
            await self._embedded.stop()
        await self._stop_listening_for_scrapes()
        # The reactor may still hold events of sockets that are closed now, and give them to new ones of their numbers.
        await deferLater(self._reactor, 0)
        self._log.info("stopped")

    async def _open(self) -> None:
        """Start the embedded database, migrate, and fill the pool; waits for a database that can't be reached yet."""
        dsn = self._settings.database_url
        if self._embedded is not None:
            await self._embedded.start()
            dsn = self._embedded.dsn
        assert dsn is not None
        reasons, quiet_until = Reasons(), self._reactor.seconds() + self._quiet_seconds
        while not self._stopping:
            try:
                await migrate(self._reactor, dsn, self._migrations)
                break
            except (ConnectionFailed, TransactionAborted, Declined) as error:
                if self._reactor.seconds() > quiet_until and reasons.is_new(str(error)):
                    self._log.warn("waiting for the database: {error}", error=error)
                await deferLater(self._reactor, self._database.pool.times.reconnect)
        if not self._stopping:
            self._database.open(dsn)
            self._live.start(dsn)
            self._housekeeping.start()
            self._history.start()
            self._checking.start()
            self._log.info("the database is open")
            self._when_open()
