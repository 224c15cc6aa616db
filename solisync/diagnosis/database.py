"""Checks of the database: server, clock, schema, the rights of the role, and what is left."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from twisted.internet.base import ReactorBase

from ..errors import DatabaseError, FatalError
from ..postgres import introspection
from ..postgres.connection import Connection
from ..postgres.migrate import load_migrations
from ..postgres.transaction import Statements
from ..settings.settings import ServingSettings
from ..storage import schema
from . import capacity as capacity_checks
from . import live as live_checks
from .findings import Finding, fine, note, wrong

OLDEST = 14
CLOCK_SECONDS = 2.0


async def examine(
    settings: ServingSettings, reactor: ReactorBase, connecting: AbstractAsyncContextManager[Connection]
) -> list[Finding]:
    """Run all checks on the database, on a connection for them alone."""
    try:
        async with connecting as connection:
            return [finding async for finding in _findings(settings, connection, reactor)]
    except (FatalError, DatabaseError) as error:
        text = " ".join(str(error).removeprefix("solisync: ").split())
        return [wrong("database", text, "see that the server runs, and that the settings name it")]


async def _findings(settings: ServingSettings, connection: Connection, reactor: ReactorBase) -> AsyncIterator[Finding]:
    before = datetime.now(UTC)
    theirs = await introspection.clock(connection)
    after = datetime.now(UTC)
    server = await introspection.server(connection)
    if server.major < OLDEST:
        yield wrong("database", f"PostgreSQL {server.version} is too old", f"upgrade it to {OLDEST} or newer")
    elif server.encoding != "UTF8":
        text = f"its encoding is {server.encoding}"
        yield wrong("database", text, "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0")
    elif server.read_only:
        yield wrong("database", "it is a standby, or set to be read only", "name the primary in DATABASE_URL")
    else:
        embedded = settings.database_url is None
        place = f"embedded in {settings.data_dir}" if embedded else f"at {connection.server.name}"
        yield fine("database", f"PostgreSQL {server.version}, {place}")
    yield clock(before - theirs, theirs - after)
    if connection.server.pooled:
        yield _pooler(connection.server.lacking, settings.prepared_statements)
    if not server.read_only:
        yield await live_checks.bus(settings, reactor, connection)
    if settings.database_url is not None and not connection.server.pooled:
        for finding in capacity_checks.connections(settings, server):
            yield finding
    yield _schema(await schema.number(Statements(connection)))
    unusable = await introspection.unusable_tables(connection)
    if unusable:
        yield wrong("rights", f"this role may not use {', '.join(unusable)}", "make it the owner of these tables")
    elif not server.may_create:
        yield wrong("rights", "this role may not create tables", "GRANT CREATE ON SCHEMA public to it")
    else:
        yield fine("rights", "this role may do all that is needed")
    if not server.read_only:
        for finding in capacity_checks.replication(await introspection.replication(connection)):
            yield finding
    sizes = await introspection.sizes(connection)
    yield capacity_checks.disk(await _data_dir(settings, connection), sizes.total)
    for finding in capacity_checks.tables(sizes, settings.analytics_days):
        yield finding


async def _data_dir(settings: ServingSettings, connection: Connection) -> Path | None:
    """The directory of the database if it is on this machine and this role may know."""
    if settings.database_url is None:
        return settings.data_dir
    directory = await introspection.data_directory(connection)
    return None if directory is None else Path(directory)


def clock(ahead: timedelta, behind: timedelta) -> Finding:
    """Check the clock, given by how much this machine is ahead of the database at least, and behind it at least."""
    seconds = max(ahead, behind).total_seconds()
    if seconds > CLOCK_SECONDS:
        which = "ahead of" if ahead > behind else "behind"
        text = f"this machine's clock is {seconds:.1f} s {which} the database's"
        return wrong("clock", text, "set both by NTP: tokens expire by this one, rate limits by the other")
    return fine("clock", "this machine and the database agree on the time")


def _pooler(lacking: str, prepared_statements: bool) -> Finding:
    if prepared_statements:
        return note("pooler", "there is one before the database", "in transaction mode, --no-prepared-statements")
    if lacking:
        text = f"there is one before the database, and the role needs a value of its own for {lacking}"
        return wrong("pooler", text, "ALTER ROLE … SET …, see docs/high-availability.md#pgbouncer")
    return fine("pooler", "there is one before the database; statements are not prepared, and the role has its limits")


def _schema(number: int) -> Finding:
    latest = load_migrations()[-1].number
    if number < latest:
        return note("schema", f"it is at {number}, not yet at {latest}", "run: solisync --migrate")
    if number > latest:
        return note("schema", f"it is at {number}, newer than this version's {latest}", "upgrade this node soon")
    return fine("schema", f"it is at {number}, up to date")
