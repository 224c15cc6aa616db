"""The service tree, on one screen: the only place where objects are built and wired.

    Solisync
    ├── EmbeddedPostgres   unless DATABASE_URL names a server
    ├── Database           the pool; Passwords, RateLimiter and the nouns of web/ share it
    ├── Housekeeping       prunes what has expired
    └── Site on a port     accepts from the first moment; answers 503 until the database is up and migrated

Starting is top down, stopping bottom up and one after the other, because MultiService would stop all at once and
take the database away from requests that still run.
"""

import atexit
import encodings.idna  # noqa: F401  every request needs it, and under twistd's --uid it may be out of reach by then
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

from twisted.application.service import Service
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.endpoints import UNIXServerEndpoint, serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from . import __version__, passwords
from .database import RECONNECT_SECONDS, Database
from .embedded import EmbeddedPostgres
from .errors import CannotStart, ConnectionFailed, TransactionAborted
from .housekeeping import Housekeeping
from .migrate import Migration, load_migrations, migrate
from .passwords import Passwords
from .ratelimit import RateLimiter
from .remembered import Remembered
from .settings import Settings
from .storage import STATEMENTS, replays
from .tokens import Tokens
from .web.accounts import Accounts
from .web.analytics import Analytics
from .web.app import App
from .web.avatars import Avatars
from .web.challenge import Challenge
from .web.health import Health
from .web.leaderboard import Leaderboard, load_board
from .web.openapi import OpenApi
from .web.replays import Replays
from .web.routes import body_refusals
from .web.sessions import Sessions
from .web.site import Site
from .web.sync import Sync
from .web.table import routes

DATABASE_STOP_SECONDS = 2.0
MIB = 2**20


def make_service(
    settings: Settings,
    reactor: ReactorBase,
    *,
    uid: int | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: str(uuid4()),
    bcrypt_cost: int = passwords.COST,
    postgres_options: tuple[str, ...] = (),
) -> "Solisync":
    """Build the whole service; nothing is opened or started yet.

    `uid` is whom the process is going to become after it has started (twistd's --uid). The clock, the ids, the cost
    of bcrypt and the embedded server's settings are arguments for the tests.
    """
    embedded = None
    if settings.database_url is None:
        room = f"max_connections={settings.database_connections + 30}"  # for admin commands and psql
        embedded = EmbeddedPostgres(reactor=reactor, data_dir=settings.data_dir, options=(room, *postgres_options))
    migrations = load_migrations()
    database = Database(
        reactor=reactor,
        size=settings.database_connections,
        statements=STATEMENTS if settings.prepare else (),
    )
    at_once = max(1, os.cpu_count() or 1)
    reactor.suggestThreadPoolSize(at_once + 8)  # name lookups use these threads too
    hashing = Passwords(reactor=reactor, threads=reactor.getThreadPool(), at_once=at_once, cost=bcrypt_cost)
    tokens = Tokens(settings.jwt_secret)
    openapi = OpenApi()
    board = Remembered(lambda: load_board(database), reactor=reactor)
    recent = Remembered(lambda: database.once(replays.recent), reactor=reactor)
    table = routes(
        accounts=Accounts(
            database=database, passwords=hashing, tokens=tokens, board=board, recent=recent, now=now, new_id=new_id
        ),
        sessions=Sessions(database=database, passwords=hashing, tokens=tokens, now=now, new_id=new_id),
        avatars=Avatars(database=database),
        sync=Sync(database=database, board=board, now=now),
        leaderboard=Leaderboard(database=database, board=board, now=now),
        challenge=Challenge(now=now),
        replays=Replays(
            database=database,
            board=board,
            recent=recent,
            quota_bytes=settings.replay_quota_mb * MIB or None,
            now=now,
            new_id=new_id,
        ),
        analytics=Analytics(database=database, now=now),
        health=Health(database=database, schema_number=migrations[-1].number),
        openapi=openapi,
    )
    openapi.describe(table)
    app = App(table, reactor=reactor, limiter=RateLimiter(database=database, reactor=reactor), tokens=tokens, now=now)
    site = Site(
        app.resource(),
        reactor,
        trusted_proxies=settings.trusted_proxies,
        cors_origins=settings.cors_origins,
        body_refusals=body_refusals(table),
    )
    return Solisync(
        settings=settings,
        reactor=reactor,
        uid=uid,
        embedded=embedded,
        migrations=migrations,
        database=database,
        housekeeping=Housekeeping(database=database, reactor=reactor, now=now, analytics_days=settings.analytics_days),
        site=site,
    )


class Solisync(Service):
    """The running service; `failure` holds the reason when it had to stop by itself."""

    _log = Logger()

    def __init__(
        self,
        *,
        settings: Settings,
        reactor: ReactorBase,
        uid: int | None,
        embedded: EmbeddedPostgres | None,
        migrations: tuple[Migration, ...],
        database: Database,
        housekeeping: Housekeeping,
        site: Site,
    ) -> None:
        self._settings = settings
        self._reactor = reactor
        self._uid = uid
        self._embedded = embedded
        self._migrations = migrations
        self._database = database
        self._housekeeping = housekeeping
        self._site = site
        self._port: IListeningPort | None = None
        self._stopping = False
        self.failure: CannotStart | None = None

    @property
    def address(self) -> IAddress:
        """Where the service listens, once it does."""
        assert self._port is not None
        return self._port.getHost()

    def privilegedStartService(self) -> None:
        """Take what may need root: the data directory and the port. Raises CannotStart."""
        super().privilegedStartService()
        if self._embedded is not None:
            self._embedded.claim(self._uid)
        self._port = _listen(self._reactor, self._settings.listen, self._site)

    def startService(self) -> None:
        """Begin to open the database; requests are answered with 503 until that is done."""
        super().startService()
        self._log.info("solisync {version} listens on {where}", version=__version__, where=self._settings.listen)
        Deferred.fromCoroutine(self._open()).addErrback(self._give_up)

    def stopService(self) -> Deferred[None]:
        """Stop accepting, let what runs end for up to `stop_seconds`, then close the database."""
        super().stopService()
        self._stopping = True
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        self._housekeeping.stop()
        if self._port is not None:
            await maybeDeferred(self._port.stopListening)
        await self._site.drain(self._settings.stop_seconds)
        await self._database.close(DATABASE_STOP_SECONDS)
        if self._embedded is not None:
            await self._embedded.stop()
        self._log.info("stopped")

    async def _open(self) -> None:
        dsn = self._settings.database_url
        if self._embedded is not None:
            await self._embedded.start()
            dsn = self._embedded.dsn
        assert dsn is not None
        waiting = False
        while not self._stopping:
            try:
                await migrate(self._reactor, dsn, self._migrations)
                break
            except (ConnectionFailed, TransactionAborted) as error:
                if not waiting:
                    self._log.warn("waiting for the database: {error}", error=error)
                waiting = True
                await deferLater(self._reactor, RECONNECT_SECONDS)
        if not self._stopping:
            self._database.open(dsn)
            self._housekeeping.start()
            self._log.info("the database is open")

    def _give_up(self, failure: Failure) -> None:
        if self._stopping:
            return
        if isinstance(failure.value, CannotStart):
            self.failure = failure.value
            self._log.critical("{error}", error=failure.value)
        else:
            self.failure = CannotStart("solisync: could not start, see the log")
            self._log.failure("could not start", failure)
        # twistd ends with status 0, or by the signal that stopped it; a supervisor takes both for a success
        atexit.register(_exit_1)
        self._reactor.callWhenRunning(self._reactor.stop)


def _exit_1() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _listen(reactor: ReactorBase, description: str, site: Site) -> IListeningPort:
    endpoint = serverFromString(reactor, description)
    if isinstance(endpoint, UNIXServerEndpoint):
        _remove_stale_socket(endpoint._address)
    outcome: list[IListeningPort | Failure] = []
    endpoint.listen(site).addBoth(outcome.append)
    (port,) = outcome  # these endpoints listen at once or fail at once
    if isinstance(port, Failure):
        reason = port.value.socketError if isinstance(port.value, CannotListenError) else port.value
        raise CannotStart(f"solisync: can't listen on {description}: {getattr(reason, 'strerror', None) or reason}")
    return port


def _remove_stale_socket(path: str) -> None:
    """Remove a socket on which nobody listens, left by a process that was killed.

    Twisted does so itself while its lock file is still there and no process has the number in it. In a container the
    same numbers come back.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            for leftover in (path, f"{path}.lock"):
                with suppress(OSError):
                    os.unlink(leftover)
        except OSError:
            pass  # listening will say what is wrong with it
