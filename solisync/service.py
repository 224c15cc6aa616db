"""The service tree: the only module that builds and connects objects, for one process or for several.

    Solisync             the service in one process
    ├── EmbeddedPostgres   unless DATABASE_URL names a server, or a parent runs it
    ├── Parts              shared by everything below
    │   ├── Database         the connection pool
    │   ├── Bus, Streams     messages between processes, and streams of events
    │   ├── History          stores the history of accounts
    │   └── Timelines        makes timelines, in a child process that the first request starts
    ├── Housekeeping       deletes expired rows
    ├── Checking           checks replays, in child processes of low priority; only one of several workers has them
    ├── Site               HTTP for admins (solisync.web.console.app), on its own listener, if it is configured
    └── Site               HTTP (solisync.web.players_app); returns 503 until the schema is up to date

    Supervisor           the parent of several worker processes, each of which has a Solisync
    ├── EmbeddedPostgres   unless DATABASE_URL names a server
    └── SharedMetrics      the sum of the workers' metrics

A Solisync starts from top to bottom and stops from bottom to top, one part after the other. A MultiService would stop
all parts at the same time, and so close the database while requests still need it.
"""

import encodings.idna  # noqa: F401  requests need it, and after twistd's --uid it may not be readable
import socket
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from twisted.internet.base import ReactorBase
from twisted.logger import Logger

from .access import passwords
from .access.large_bodies import LargeBodies
from .access.passwords import Passwords
from .access.rate_limit import LIMITS, LOCAL_LIMITS, RateLimiter
from .access.tokens import Tokens
from .checking.queue_worker import Checking
from .checking.timelines import Timelines
from .embedded.marks import check_may_be_made
from .embedded.server import EmbeddedPostgres
from .events.bus import Bus
from .events.live_errors import LiveErrors
from .events.streams import Streams
from .housekeeping import NAMES, Housekeeping
from .players.history import History
from .postgres import TIMES, PoolTimes
from .postgres.database import Database
from .postgres.migrate import load_migrations
from .process.cores import usable_cores
from .process.daemon import Daemon
from .process.metrics import Metrics, Sampler
from .process.service_manager import ServiceManager
from .process.shared_metrics import SharedMetrics
from .rules.counting import Basis
from .rules.merge import CONFLICT_FIELDS
from .serving import QUIET_SECONDS, Solisync
from .settings.settings import OTHER_CONNECTIONS, ServingSettings, unknown_variables
from .storage import STATEMENTS
from .storage.replays import recent_replays
from .supervisor import COMMAND, Supervisor, worker_environ
from .web.app import HANDLER_SECONDS
from .web.handler_limits import OneAtATime
from .web.players_app import make_site
from .web.process_parts import Parts
from .web.resources.leaderboard import load_board
from .web.shared_cache import CoalescingCache

DNS_THREADS = 8  # threads of the reactor's pool beside those that hash passwords

_log = Logger()


def make_daemon(
    settings: ServingSettings,
    reactor: ReactorBase,
    environ: MutableMapping[str, str],
    options: Mapping[str, str] | None = None,
    *,
    uid: int | None = None,
    log_to: int = 2,
    command: Sequence[str] = COMMAND,
) -> Daemon:
    """Make the service, in one process or in several as set; `settings` were read from `environ` and `options`.

    `uid` is the user that the process becomes after it has started (twistd's --uid). `log_to` is the descriptor that
    workers log to: 2 is standard error, 1 is where `twistd -n` logs. `command` starts a worker.
    """
    for name, advice in unknown_variables(environ):
        _log.warn("{name} is not a setting: {advice}", name=name, advice=advice)
    manager = ServiceManager.from_environ(environ)
    daemon: Daemon
    if settings.workers == 1:
        daemon = make_service(settings, reactor, uid=uid)
    else:
        daemon = Supervisor(
            settings=settings,
            reactor=reactor,
            environ=worker_environ(environ, options or {}),
            embedded=_make_embedded(settings, reactor),
            metrics=SharedMetrics(),
            uid=uid,
            log_to=log_to,
            command=command,
        )
    daemon.manager = manager
    return daemon


def make_service(
    settings: ServingSettings,
    reactor: ReactorBase,
    *,
    uid: int | None = None,
    inherited: socket.socket | None = None,
    admin_inherited: socket.socket | None = None,
    when_open: Callable[[], None] = lambda: None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: str(uuid4()),
    bcrypt_cost: int = passwords.COST,
    times: PoolTimes = TIMES,
    handler_seconds: float = HANDLER_SECONDS,
    quiet_seconds: float = QUIET_SECONDS,
) -> Solisync:
    """Make the service of one process, without opening or starting anything.

    A worker listens on the socket that it `inherited` from its parent, and on `admin_inherited` for the console.
    `when_open` is called when the database is open. Tests pass their own clock, ids, cost of bcrypt and times.
    """
    migrations = load_migrations()
    limits = [limit.name for limit in (*LIMITS, *LOCAL_LIMITS, LargeBodies, OneAtATime, Timelines)]
    metrics = Metrics(
        limits=limits, merge_bases=[basis.value for basis in Basis], conflict_fields=CONFLICT_FIELDS, jobs=NAMES
    )
    statements = STATEMENTS if settings.prepared_statements else ()
    database = Database(reactor=reactor, size=settings.database_connections, statements=statements, times=times)
    errors = LiveErrors(reactor=reactor, metrics=metrics)
    shared_pooler = settings.bus_database_url is None and not settings.prepared_statements
    bus = Bus(reactor=reactor, metrics=metrics, errors=errors, shared_pooler=shared_pooler, times=times)

    parts = Parts(
        settings=settings,
        reactor=reactor,
        metrics=metrics,
        database=database,
        bus=bus,
        live_streams=Streams(
            reactor=reactor,
            database=database,
            bus=bus,
            metrics=metrics,
            errors=errors,
            wanted=settings.streams,
            now=now,
        ),
        timelines=Timelines(database=database, reactor=reactor, metrics=metrics),
        history=History(
            database=database, reactor=reactor, enabled=settings.history_days > 0, lost=metrics.history_lost.inc
        ),
        passwords=_make_passwords(settings, reactor, metrics, bcrypt_cost),
        tokens=Tokens(settings.jwt_secret, previous=settings.jwt_secret_previous, new_id=new_id),
        limiter=RateLimiter(database=database, reactor=reactor, on_refusal=metrics.refused),
        large_bodies=LargeBodies(seconds=reactor.seconds, on_refusal=partial(metrics.refused, LargeBodies.name)),
        board=CoalescingCache(lambda: load_board(database), reactor=reactor),
        recent=CoalescingCache(lambda verified: database.run(recent_replays.recent, verified), reactor=reactor),
        schema_number=migrations[-1].number,
        now=now,
        new_id=new_id,
        handler_seconds=handler_seconds,
    )
    admin_site = None
    if settings.admin_listen is not None:
        from .web.console.app import make_console

        admin_site = make_console(parts)
    return Solisync(
        parts=parts,
        embedded=_make_embedded(settings, reactor),
        migrations=migrations,
        housekeeping=Housekeeping(
            database=database,
            reactor=reactor,
            publish=bus.publish,
            forget=parts.forget_lists,
            analytics_days=settings.analytics_days,
            history_days=settings.history_days,
            guest_days=settings.guest_days,
            limits=settings.limits,
            show=metrics.housekeeping,
        ),
        checking=Checking(
            database=database,
            reactor=reactor,
            metrics=metrics,
            bus=bus,
            count=settings.checkers,
            changed=parts.recent.invalidate,
        ),
        sampler=Sampler(metrics=metrics, reactor=reactor, sample=partial(_sample, parts)),
        site=make_site(parts),
        admin_site=admin_site,
        uid=uid,
        inherited=inherited,
        admin_inherited=admin_inherited,
        when_open=when_open,
        quiet_seconds=quiet_seconds,
    )


def _make_embedded(settings: ServingSettings, reactor: ReactorBase) -> EmbeddedPostgres | None:
    """The embedded PostgreSQL, allowing all connections of all processes, or None if the settings name a server.

    Raises FatalError if the embedded database would be a new one, and the service has used another one.
    """
    if settings.database_url is not None:
        return None
    check_may_be_made(settings.data_dir, new=settings.new_database)
    room = settings.node_connections + OTHER_CONNECTIONS
    return EmbeddedPostgres(reactor=reactor, data_dir=settings.data_dir, options=(f"max_connections={room}",))


def _make_passwords(settings: ServingSettings, reactor: ReactorBase, metrics: Metrics, cost: int) -> Passwords:
    """Make the hashing of passwords, with this process's share of the cores that it may use."""
    at_once = max(1, usable_cores() // settings.workers)
    reactor.suggestThreadPoolSize(at_once + DNS_THREADS)
    threads = reactor.getThreadPool()
    return Passwords(reactor=reactor, threads=threads, at_once=at_once, cost=cost, waited=metrics.hash_seconds.observe)


def _sample(parts: Parts) -> None:
    parts.metrics.password_hash_queue.set(parts.passwords.waiting)
    pool = parts.database.pool
    parts.metrics.ready.set(pool.used + pool.idle > 0)
    parts.metrics.pool(
        used=pool.used,
        idle=pool.idle,
        abandoned=pool.abandoned,
        waiting=pool.waiting,
        replaced=pool.replaced,
        servers=pool.servers,
    )
