"""Work on the database without the HTTP service: for the commands, beside a running service or without one."""

from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater, react

from .database import Database
from .embedded import DataDirBusy, EmbeddedPostgres
from .errors import CannotStart, ConnectionFailed, DatabaseError, Refused, TransactionAborted
from .migrate import load_migrations, migrate
from .settings import Settings

PATIENCE_SECONDS = 15.0
RETRY_SECONDS = 0.2

T = TypeVar("T")


def run(work: Callable[[ReactorBase], Awaitable[str]]) -> NoReturn:
    """Run `work` on the reactor, print what it returns and exit: 0, or 1 with one line on standard error."""
    ended = False

    async def command(reactor: ReactorBase) -> None:
        nonlocal ended
        try:
            print(await work(reactor))
        except (CannotStart, Refused, DatabaseError) as error:
            raise SystemExit(str(error)) from None  # and no Exception, of which react prints a traceback
        finally:
            ended = True

    try:
        react(lambda reactor: Deferred.fromCoroutine(command(reactor)))
    except SystemExit:
        if not ended:  # by a signal, after which react would exit with 0
            raise SystemExit("interrupted") from None
        raise


async def with_dsn(settings: Settings, reactor: ReactorBase, work: Callable[[str], Awaitable[T]], *, create: bool) -> T:
    """Call `work` with the DSN of the configured database.

    An embedded server is started for the duration, under the same lock as the service's; when that lock is taken,
    the server of the running service is used. That one may be starting or about to leave, so a connection that can't
    be made is tried again for a while. Raises CannotStart when the database can't be reached.
    """
    deadline = reactor.seconds() + (PATIENCE_SECONDS if settings.database_url is None else 0)
    while True:
        try:
            if settings.database_url is not None:
                return await work(settings.database_url)
            embedded = EmbeddedPostgres(reactor=reactor, data_dir=settings.data_dir)
            return await _with_embedded(embedded, work, create=create)
        except (ConnectionFailed, TransactionAborted) as error:
            if reactor.seconds() >= deadline:
                raise CannotStart(f"solisync: can't reach the database: {error}") from None
        await deferLater(reactor, RETRY_SECONDS)


async def _with_embedded(embedded: EmbeddedPostgres, work: Callable[[str], Awaitable[T]], *, create: bool) -> T:
    if not create:
        embedded.check_directory()
    try:
        embedded.claim()
    except DataDirBusy:
        return await work(embedded.dsn)
    try:
        if not create:
            embedded.check_cluster()
        await embedded.start()
        return await work(embedded.dsn)
    finally:
        await embedded.stop()


async def migrate_database(settings: Settings, reactor: ReactorBase) -> list[str]:
    """Bring the schema up to this build; returns the names of the migrations that were applied."""
    return await with_dsn(settings, reactor, lambda dsn: migrate(reactor, dsn, load_migrations()), create=True)


async def with_database(settings: Settings, reactor: ReactorBase, work: Callable[[Database], Awaitable[T]]) -> T:
    """Call `work` with a one-connection Database whose schema is up to date; it must exist already."""

    async def connected(dsn: str) -> T:
        await migrate(reactor, dsn, load_migrations())
        database = Database(reactor=reactor, size=1, statements=())
        database.open(dsn)
        try:
            return await work(database)
        finally:
            await database.close(0)

    return await with_dsn(settings, reactor, connected, create=False)
