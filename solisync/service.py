"""The service tree, on one screen: the only place where objects are built and wired.

    Solisync
    ├── EmbeddedPostgres   unless DATABASE_URL names a server
    ├── Database           the pool; Passwords, RateLimiter and the nouns of web/ share it
    ├── Housekeeping       prunes what has expired
    └── Site on a port     accepts from the first moment; answers 503 until the database is up and migrated

Starting is top down, stopping bottom up and one after the other, because MultiService would stop all at once and
take the database away from requests that still run.
"""

import encodings.idna  # noqa: F401  every request needs it, and under twistd's --uid it may be out of reach by then
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger

from . import __version__
from .access import passwords
from .access.passwords import Passwords
from .access.rate_limit import RateLimiter
from .access.tokens import Tokens
from .errors import ConnectionFailed, TransactionAborted
from .housekeeping import Housekeeping
from .postgres.database import RECONNECT_SECONDS, Database
from .postgres.embedded import EmbeddedPostgres
from .postgres.migrate import Migration, load_migrations, migrate
from .process import listening
from .process.daemon import Daemon
from .process.metrics import Metrics, Sampler
from .settings import Settings
from .storage import STATEMENTS, replays
from .web.accounts import Accounts
from .web.analytics import Analytics
from .web.app import App
from .web.avatars import Avatars
from .web.challenge import Challenge
from .web.health import Health
from .web.leaderboard import Leaderboard, load_board
from .web.replays import Replays
from .web.route import body_refusals
from .web.routes import routes
from .web.sessions import Sessions
from .web.shared_cache import CoalescingCache
from .web.swagger_ui import Docs
from .web.sync import Sync
from .web.wire.site import Site

DATABASE_STOP_SECONDS = 2.0
QUIET_SECONDS = 3.0  # how long the database may be away at the start before the log says so
MIB = 2**20


def make_service(
    settings: Settings,
    reactor: ReactorBase,
    *,
    uid: int | None = None,
    inherited: socket.socket | None = None,
    when_open: Callable[[], None] = lambda: None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: str(uuid4()),
    bcrypt_cost: int = passwords.COST,
    postgres_options: tuple[str, ...] = (),
) -> "Solisync":
    """Build the whole service; nothing is opened or started yet.

    `uid` is whom the process is going to become after it has started (twistd's --uid). A worker listens on the socket
    `inherited` from its parent, and tells it `when_open`. The clock, the ids, the cost of bcrypt and the embedded
    server's settings are arguments for the tests.
    """
    embedded = None
    if settings.database_url is None:
        embedded = make_embedded(settings, reactor, postgres_options)
    migrations = load_migrations()
    database = Database(
        reactor=reactor,
        size=settings.database_connections,
        statements=STATEMENTS if settings.prepared_statements else (),
    )
    metrics = Metrics()
    at_once = max(1, (os.cpu_count() or 1) // settings.workers)
    reactor.suggestThreadPoolSize(at_once + 8)  # name lookups use these threads too
    hashing = Passwords(
        reactor=reactor,
        threads=reactor.getThreadPool(),
        at_once=at_once,
        cost=bcrypt_cost,
        waited=metrics.hash_seconds.observe,
    )
    tokens = Tokens(settings.jwt_secret)
    board = CoalescingCache(lambda: load_board(database), reactor=reactor)
    recent = CoalescingCache(lambda: database.autocommit(replays.recent), reactor=reactor)
    table = routes(
        accounts=Accounts(
            database=database, passwords=hashing, tokens=tokens, board=board, recent=recent, now=now, new_id=new_id
        ),
        sessions=Sessions(database=database, passwords=hashing, tokens=tokens, metrics=metrics, now=now, new_id=new_id),
        avatars=Avatars(database=database),
        sync=Sync(database=database, board=board, metrics=metrics, now=now),
        leaderboard=Leaderboard(database=database, board=board, now=now),
        challenge=Challenge(now=now),
        replays=Replays(
            database=database,
            board=board,
            recent=recent,
            quota_bytes=settings.replay_quota_mib * MIB or None,
            now=now,
            new_id=new_id,
        ),
        analytics=Analytics(database=database, metrics=metrics, now=now),
        health=Health(database=database, schema_number=migrations[-1].number),
        docs=Docs(),
    )
    app = App(
        table,
        reactor=reactor,
        limiter=RateLimiter(database=database, reactor=reactor),
        tokens=tokens,
        metrics=metrics,
        now=now,
    )
    site = Site(
        app.resource(),
        reactor,
        trusted_proxies=settings.trusted_proxies,
        cors_origins=settings.cors_origins,
        metrics=metrics,
        body_refusals=body_refusals(table),
    )

    def look() -> None:
        metrics.password_hash_queue.set(hashing.waiting)
        metrics.pool(used=database.used, idle=database.idle, waiting=database.waiting, replaced=database.replaced)

    return Solisync(
        settings=settings,
        reactor=reactor,
        uid=uid,
        inherited=inherited,
        when_open=when_open,
        embedded=embedded,
        migrations=migrations,
        database=database,
        housekeeping=Housekeeping(database=database, reactor=reactor, now=now, analytics_days=settings.analytics_days),
        site=site,
        metrics=metrics,
        sampler=Sampler(metrics=metrics, reactor=reactor, look=look),
    )


def make_embedded(settings: Settings, reactor: ReactorBase, options: tuple[str, ...] = ()) -> EmbeddedPostgres:
    """The embedded PostgreSQL, with room for every connection of every process."""
    processes = settings.workers + (settings.workers > 1)  # one more while workers are replaced
    room = processes * settings.database_connections + 30  # for admin commands and psql
    return EmbeddedPostgres(reactor=reactor, data_dir=settings.data_dir, options=(f"max_connections={room}", *options))


class Solisync(Daemon):
    """The running service in one process."""

    _log = Logger()

    def __init__(
        self,
        *,
        settings: Settings,
        reactor: ReactorBase,
        uid: int | None,
        inherited: socket.socket | None,
        when_open: Callable[[], None],
        embedded: EmbeddedPostgres | None,
        migrations: tuple[Migration, ...],
        database: Database,
        housekeeping: Housekeeping,
        site: Site,
        metrics: Metrics,
        sampler: Sampler,
    ) -> None:
        super().__init__(reactor)
        self._settings = settings
        self._uid = uid
        self._inherited = inherited
        self._when_open = when_open
        self._embedded = embedded
        self._migrations = migrations
        self._database = database
        self._housekeeping = housekeeping
        self._site = site
        self._metrics = metrics
        self._sampler = sampler

    def privilegedStartService(self) -> None:
        """Take what may need root: the data directory and the port. Raises FatalError."""
        super().privilegedStartService()
        if self._embedded is not None:
            self._embedded.claim(self._uid)
        self._port = listening.listen(self._reactor, self._settings.listen, self._site, inherited=self._inherited)

        self._listen_for_scrapes(self._settings.metrics_listen, self._metrics.exposition)

    def startService(self) -> None:
        """Begin to open the database; requests are answered with 503 until that is done."""
        super().startService()
        if self._inherited is None:
            self._log.info("solisync {version} listens on {where}", version=__version__, where=self._settings.listen)
        self._sampler.start()
        Deferred.fromCoroutine(self._open()).addErrback(self._give_up)

    async def _stop(self) -> None:
        """Stop accepting, let what runs end for up to `stop_seconds`, then close the database."""
        self._housekeeping.stop()
        self._sampler.stop()
        self._site.connections.announce_end()
        if self._port is not None:
            await listening.stop(self._reactor, self._port)
        await self._site.connections.drain(self._settings.stop_seconds)
        await self._database.close(DATABASE_STOP_SECONDS)
        if self._embedded is not None:
            await self._embedded.stop()
        await self._stop_listening_for_scrapes()
        self._log.info("stopped")

    async def _open(self) -> None:
        dsn = self._settings.database_url
        if self._embedded is not None:
            await self._embedded.start()
            dsn = self._embedded.dsn
        assert dsn is not None
        patience = self._reactor.seconds() + QUIET_SECONDS
        while not self._stopping:
            try:
                await migrate(self._reactor, dsn, self._migrations)
                break
            except (ConnectionFailed, TransactionAborted) as error:
                if self._reactor.seconds() > patience:
                    patience = float("inf")
                    self._log.warn("waiting for the database: {error}", error=error)
                await deferLater(self._reactor, RECONNECT_SECONDS)
        if not self._stopping:
            self._database.open(dsn)
            self._housekeeping.start()
            self._log.info("the database is open")
            self._when_open()
