"""Runs a command on the reactor and on the database, whether or not a service is running."""

import os
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import NoReturn, TypeVar, cast

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater, react
from twisted.logger import ILogObserver, LogEvent, globalLogBeginner

from ..embedded.data_directory import DataDirBusy
from ..embedded.marks import check_may_be_made, check_not_replaced
from ..embedded.server import EmbeddedPostgres
from ..errors import (
    ConnectionFailed,
    DatabaseError,
    FatalError,
    Refused,
    TransactionAborted,
    Unavailable,
    WrongSchema,
)
from ..postgres import TIMES
from ..postgres.connection import Connection
from ..postgres.database import Database
from ..postgres.migrate import load_migrations, migrate
from ..postgres.opening import open_connection
from ..postgres.transaction import Statements
from ..process import logs
from ..process.entry_point import monotonic_reactor
from ..settings.settings import Settings
from ..storage import schema
from .output import harmless

PATIENCE_SECONDS = 15.0
RETRY_SECONDS = 0.2

T = TypeVar("T")


def run(work: Callable[[ReactorBase], Awaitable[str | None]], *, log_format: str = "text") -> NoReturn:
    """Run `work` on the reactor, print the text that it returns, and exit: 0, or 1 with one line on standard error.

    A signal cancels the work, which may clean up before the process ends. A command prints no log, except lines about
    what it is `waiting` for and, with the log format json, the audit trail; these go to standard error.
    """
    write = logs.observer(log_format, sys.stderr)

    def observe(event: LogEvent) -> None:
        audited = log_format == "json" and event.get("log_namespace") == logs.AUDIT
        if audited or event.get("waiting"):
            write(event)

    ended: Deferred[None] = Deferred()

    async def command(reactor: ReactorBase) -> None:
        try:
            text = await work(reactor)
            if text is not None:
                print(text)
            sys.stdout.flush()
        except CancelledError:
            raise SystemExit("interrupted") from None
        except FatalError as error:
            raise SystemExit(str(error)) from None  # react would print a traceback of an Exception
        except Unavailable:
            raise SystemExit("solisync: the database is unavailable: run the command again") from None
        except (Refused, DatabaseError) as error:
            raise SystemExit(harmless(" ".join(str(error).split()))) from None
        except BrokenPipeError:  # the reader, such as `head`, has ended
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python prints an error at exit
            raise SystemExit(1) from None
        except OSError as error:
            place = "" if error.filename is None else f": {error.filename}"
            raise SystemExit(f"solisync: {error.strerror or error}{place}") from None
        except Exception:  # a bug
            traceback.print_exc()
            raise SystemExit(1) from None
        finally:
            ended.callback(None)

    def begin(reactor: ReactorBase) -> Deferred[None]:
        running = Deferred.fromCoroutine(command(reactor))

        def interrupt() -> Deferred[None]:
            running.cancel()
            return ended

        reactor.addSystemEventTrigger("before", "shutdown", interrupt)
        return running

    globalLogBeginner.beginLoggingTo([cast(ILogObserver, observe)], redirectStandardIO=False)
    monotonic_reactor()
    react(begin)


@asynccontextmanager
async def reached(
    settings: Settings, reactor: ReactorBase, begin: Callable[[str], Awaitable[T]], *, create: bool = False
) -> AsyncIterator[tuple[str, T]]:
    """Yield the DSN of the configured database, and the result of `begin(dsn)`.

    An embedded server is started for the duration, and until no other command uses it, under the service's lock. If a
    running service or command holds that lock, its server is used. Because that server may be starting or stopping,
    `begin` is repeated for PATIENCE_SECONDS while it can't connect. Raises FatalError if the database can't be reached,
    if a service has replaced the embedded database, or if there is no embedded database and `create` is false or a
    service has used another one.
    """
    deadline = reactor.seconds() + (PATIENCE_SECONDS if settings.database_url is None else 0)
    while True:
        async with _server(settings, reactor, create=create) as dsn:
            try:
                begun = await begin(dsn)
            except WrongSchema as error:
                raise FatalError(f"solisync: {error}") from None
            except (ConnectionFailed, TransactionAborted) as error:
                if reactor.seconds() >= deadline:
                    raise FatalError(f"solisync: can't reach the database: {error}") from None
            else:
                yield dsn, begun
                return
        await deferLater(reactor, RETRY_SECONDS)


@asynccontextmanager
async def _server(settings: Settings, reactor: ReactorBase, *, create: bool) -> AsyncIterator[str]:
    if settings.database_url is not None:
        yield settings.database_url
        return
    embedded = EmbeddedPostgres(reactor=reactor, data_dir=settings.data_dir)
    if create:
        check_may_be_made(settings.data_dir, new=settings.new_database)
    else:
        embedded.check_cluster()
    try:
        embedded.claim()
    except DataDirBusy:
        async with embedded.in_use():
            yield embedded.dsn
        return
    try:
        if not create:
            embedded.check_cluster()
        check_not_replaced(settings.data_dir)
        await embedded.start()
        yield embedded.dsn
    finally:
        async with embedded.in_use(alone=True):
            await embedded.stop()


async def migrate_database(settings: Settings, reactor: ReactorBase) -> list[str]:
    """Update the schema to this version; returns the names of the applied migrations."""
    async with reached(settings, reactor, partial(_migrate, reactor), create=True) as (_, applied):
        return applied


@asynccontextmanager
async def database(settings: Settings, reactor: ReactorBase, *, create: bool = False) -> AsyncIterator[Database]:
    """Yield a Database with one connection; it must exist with a schema of this version.

    With `create`, a missing embedded database is created, and the schema is updated.
    """
    begin: Callable[[str], Awaitable[object]] = partial(_migrate if create else _check_schema, reactor)
    async with reached(settings, reactor, begin, create=create) as (dsn, _):
        opened = Database(reactor=reactor, size=1, statements=())
        opened.open(dsn)
        try:
            yield opened
        finally:
            await opened.close(TIMES.work)  # after an interrupt, work that has begun still completes


@asynccontextmanager
async def connection(settings: Settings, reactor: ReactorBase) -> AsyncIterator[Connection]:
    """Yield a connection to the configured database, which must exist; its statements have no time limit."""
    async with reached(settings, reactor, partial(open_connection, reactor, bounded=False)) as (_, opened):
        with closing(opened):
            yield opened


async def _migrate(reactor: ReactorBase, dsn: str) -> list[str]:
    return await migrate(reactor, dsn, load_migrations())


async def _check_schema(reactor: ReactorBase, dsn: str) -> None:
    with closing(await open_connection(reactor, dsn)) as opened:
        await check_schema(Statements(opened))


async def check_schema(statements: Statements) -> None:
    """Raise FatalError if the schema is older than this version needs."""
    number, wanted = await schema.number(statements), load_migrations()[-1].number
    if number < wanted:
        raise FatalError(
            f"solisync: the database schema is at {number}, but this version needs {wanted}: run solisync --migrate"
        )
