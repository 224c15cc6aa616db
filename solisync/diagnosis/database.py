"""Checks of the database: server, clock, schema, rights of the role, bus, standbys, disk and sizes of tables."""

import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError

from ..errors import DatabaseError, FatalError
from ..housekeeping import NAMES as JOB_NAMES
from ..postgres.connection import Connection
from ..postgres.migrate import load_migrations
from ..postgres.opening import open_connection
from ..postgres.transaction import Statements
from ..rules.texts import bytes_shown, span_shown
from ..settings.settings import OTHER_CONNECTIONS, ServingSettings
from ..storage import housekeeping, retention, schema
from ..storage.housekeeping import LastRun
from . import Finding, fine, introspection, note, wrong
from .introspection import Replication, ServerFacts, Sizes

OLDEST = 14
CLOCK_SECONDS = 2.0
HEARD_SECONDS = 2.0
GIB = 2**30
FREE_MIN = 2**30
FREE_SHARE = 0.1  # of the database's size, for the write-ahead log, rebuilt indexes and growth
BACKED_UP_MAX = 2 * 2**40  # larger databases often take too long to back up and restore
ANALYTICS_MAX = 10 * GIB
TRANSACTIONS_MAX = 1_000_000_000  # half the number after which PostgreSQL accepts no more writes
LAST_OF_FIRST_VERSION = 41  # the newest migration of 1.0.0, whose nodes can't run beside this version
BACKUPS_RECORDED = 47  # the migration since which backups are recorded
BACKUP_HOURS = 36
RETENTION_SINCE = 53  # the migration since which there is a retention clock
BEHIND_SECONDS, BEHIND_LONG = 300, 86_400
JOB_LATE = timedelta(hours=3)  # three times as long as the rarest job
LAG_SECONDS, LAG_BYTES = 10.0, 64 * 2**20


async def examine(
    settings: ServingSettings, reactor: ReactorBase, connecting: AbstractAsyncContextManager[Connection]
) -> list[Finding]:
    """Run all checks of the database on a separate connection."""
    try:
        async with connecting as connection:
            return [finding async for finding in _findings(settings, connection, reactor)]
    except (FatalError, DatabaseError) as error:
        text = " ".join(str(error).removeprefix("solisync: ").split())
        advice = "check that the server runs, and that the settings name it"
        if "password authentication failed" in text:
            advice = "correct user and password in DATABASE_URL: write %, @ and / in them as %25, %40 and %2F"
        if "search_path" in text:
            text, _, advice = text.partition(": ")
        return [wrong("database", text, advice)]


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
        yield wrong("database", "it is a standby, or read-only", "name the primary in DATABASE_URL")
    else:
        embedded = settings.database_url is None
        place = f"embedded in {settings.data_dir}" if embedded else f"at {connection.server.name}"
        yield fine("database", f"PostgreSQL {server.version}, {place}")
    yield clock(before - theirs, theirs - after)
    if connection.server.pooled:
        yield _pooler(connection.server.lacking, settings.prepared_statements)
    if not server.read_only:
        yield await bus(settings, reactor, connection)
    if settings.database_url is not None and not connection.server.pooled:
        for finding in connections(settings, server):
            yield finding
    unusable = await introspection.unusable_tables(connection)
    if not {"schema_migrations", "last_backup", "retention_clock", "retention", "housekeeping"} & {*unusable}:
        statements = Statements(connection)
        number = await schema.number(statements)
        yield _schema(number)
        if number >= BACKUPS_RECORDED:
            yield backup(theirs.timestamp() - await schema.last_backup(statements))
        if number >= RETENTION_SINCE:
            yield retention_clock(await retention.behind(statements))
            serving = await introspection.service_connections(connection) > 0
            yield jobs(await housekeeping.last_runs(statements, JOB_NAMES), theirs, serving)
    for names, grant in await introspection.unreadable(connection):
        yield wrong("backup", f"this role can't back up: it may not read {', '.join(names)}", grant)
    for finding in log(*await introspection.logging(connection)):
        yield finding
    if unusable:
        advice = "make it the owner of these tables, or see docs/deployment.md#least-privileges"
        yield wrong("rights", f"this role may not use {', '.join(unusable)}", advice)
    elif not server.may_create:
        yield note("rights", "this role may not create tables", "let its owner run solisync --migrate at upgrades")
    else:
        yield fine("rights", "this role has all rights that it needs")
    if not server.read_only:
        for finding in replication(await introspection.replication(connection)):
            yield finding
    sizes = await introspection.sizes(connection)
    yield disk(await _data_dir(settings, connection), sizes.total)
    for finding in tables(sizes, settings.analytics_days):
        yield finding


def clock(ahead: timedelta, behind: timedelta) -> Finding:
    """Check this machine's clock against the database's: it is at least `ahead` of it, or at least `behind` it."""
    seconds = max(ahead, behind).total_seconds()
    if seconds > CLOCK_SECONDS:
        which = "ahead of" if ahead > behind else "behind"
        text = f"this machine's clock is {seconds:.1f} s {which} the database's"
        return wrong("clock", text, "set both by NTP: tokens use this machine's clock, rate limits the database's")
    return fine("clock", "this machine and the database agree on the time")


def _pooler(lacking: str, prepared_statements: bool) -> Finding:
    if prepared_statements:
        return note("pooler", "it is in front of the database", "in transaction mode, --no-prepared-statements")
    if lacking:
        text = f"it is in front of the database, and the role needs its own values of {lacking}"
        return wrong("pooler", text, "ALTER ROLE … SET …, see docs/high-availability.md#pgbouncer")
    return fine("pooler", "it is in front of the database; statements aren't prepared, and the role has its limits")


async def bus(settings: ServingSettings, reactor: ReactorBase, connection: Connection) -> Finding:
    """Check that a process receives its own notifications; `connection` leads to the database."""
    advice = "set SOLISYNC_BUS_DATABASE_URL to the server without the pooler, see docs/high-availability.md#pgbouncer"
    try:
        if settings.bus_database_url is not None:
            with closing(await open_connection(reactor, settings.bus_database_url, in_public=False)) as own:
                await _hear_oneself(own, reactor)
        elif connection.server.pooled and not settings.prepared_statements:
            return note("bus", "processes can't notify each other through this pooler", advice)
        else:
            await _hear_oneself(connection, reactor)
    except TimeoutError:
        return wrong("bus", "processes can't notify each other: LISTEN has no effect", advice)
    except DatabaseError as error:
        return wrong("bus", f"processes can't notify each other: {error}", "correct SOLISYNC_BUS_DATABASE_URL")
    return fine("bus", "processes can notify each other")


async def _hear_oneself(connection: Connection, reactor: ReactorBase) -> None:
    """Listen, and send a notification; raise TimeoutError if it doesn't arrive."""
    channel, heard = f"solisync_doctor_{token_hex(4)}", Deferred[str]()
    await connection.listen(channel, heard.callback)
    await connection.execute(f"NOTIFY {channel}")
    await heard.addTimeout(HEARD_SECONDS, reactor)


def connections(settings: ServingSettings, server: ServerFacts) -> Iterator[Finding]:
    """Check that the server allows the connections of a node with these settings (docs/high-availability.md)."""
    node = settings.node_connections
    if server.connections < node + OTHER_CONNECTIONS:
        yield wrong(
            "database",
            f"it allows {server.connections} connections; a node may take {node}, and others {OTHER_CONNECTIONS}",
            "raise max_connections, or lower SOLISYNC_DATABASE_CONNECTIONS or SOLISYNC_WORKERS",
        )
    if server.connection_limit is not None and server.connection_limit < node:
        yield wrong(
            "database",
            f"its CONNECTION LIMIT is {server.connection_limit}, and a node may take {node} connections",
            "raise the limit by ALTER ROLE or ALTER DATABASE",
        )


def _schema(number: int) -> Finding:
    latest = load_migrations()[-1].number
    if number < latest:
        first = "stop all nodes of 1.0.0, then " if 0 < number <= LAST_OF_FIRST_VERSION else ""
        return note("schema", f"it is at {number}, not yet at {latest}", f"{first}run: solisync --migrate")
    if number > latest:
        return note("schema", f"it is at {number}, newer than this version's {latest}", "upgrade this node soon")
    return fine("schema", f"it is at {number}, up to date")


def replication(found: Replication) -> Iterator[Finding]:
    """Check that a standby for which commits wait is connected, and that no standby is far behind."""
    if found.hidden:
        yield note("standbys", "this role may not see them", "GRANT pg_monitor TO the role")
        return
    if found.waits_for and not any(standby.synchronous for standby in found.standbys):
        text = f"commits wait for {found.waits_for}, and no such standby is connected: nothing can be written"
        yield wrong("standbys", text, "start the standby, or correct synchronous_standby_names")
    elif found.standbys and not found.waits_for:
        yield note(
            "standbys",
            "commits wait for no standby: losing the primary can lose the latest commits",
            "set synchronous_standby_names, or Patroni's synchronous_mode: docs/high-availability.md",
        )
    elif found.standbys:
        names = ", ".join(standby.name for standby in found.standbys if standby.synchronous)
        yield fine("standbys", f"{len(found.standbys)} connected; commits wait for {names}")
    for standby in found.standbys:
        if standby.behind > timedelta(seconds=LAG_SECONDS) or standby.behind_bytes > LAG_BYTES:
            text = f"{standby.name} is {bytes_shown(standby.behind_bytes)}"
            text += f" and {standby.behind.total_seconds():.0f} s behind the primary"
            yield wrong("standbys", text, "check its disk and its network: a failover to it would take as long")


async def _data_dir(settings: ServingSettings, connection: Connection) -> Path | None:
    """Return the directory of the database, or None if it is on another machine or this role may not see it."""
    if settings.database_url is None:
        return settings.data_dir
    directory = await introspection.data_directory(connection)
    return None if directory is None else Path(directory)


def backup(age_seconds: float) -> Finding:
    """Check the age of the newest backup; without one, it is as old as 1970."""
    hours = age_seconds / 3600
    if hours > 24 * 365 * 20:
        advice = "enable solisync-backup.timer, unless another program makes backups"
        return note("backup", "solisync backup has made none yet", advice)
    text = f"the newest is {hours:.0f} h old"
    if hours > BACKUP_HOURS:
        return wrong("backup", text, "see why the nightly solisync backup fails")
    return fine("backup", text)


def log(role: str, settings: list[str]) -> Iterator[Finding]:
    """Check that the server's log gets no statement of this role; `settings` would keep them out."""
    if settings:
        advice = f"as a superuser: {'; '.join(f'ALTER ROLE {role} SET {each}' for each in settings)}; then restart"
        yield note("log", "PostgreSQL may log statements of this role, with hashes of passwords", advice)


def retention_clock(behind: int) -> Finding:
    """Check how far the retention clock is behind the clock of the database, in seconds."""
    if behind <= BEHIND_SECONDS:
        return fine("retention", "the retention clock is at the database's clock")
    text = f"the retention clock is {span_shown(behind)} behind: what is old is deleted that much later"
    if behind <= BEHIND_LONG:
        return note("retention", text, "none: it catches up by 23 minutes a minute while a service runs")
    return wrong("retention", text, "check the database's clock: docs/operations.md#a-wrong-clock")


def jobs(last_runs: Sequence[LastRun], now: datetime, serving: bool) -> Finding:
    """Check that each job of housekeeping that has ever run still runs, while a service is `serving`."""
    if not any(run.ran_at for run in last_runs):
        return note("jobs", "housekeeping has not run yet", "none: its first round is a minute after the first start")
    late = [run.job for run in last_runs if run.ran_at is not None and now - run.ran_at > JOB_LATE]
    if not late:
        return fine("jobs", "all jobs of housekeeping have run within three hours")
    text = f"housekeeping has not run for three hours: {', '.join(late)}"
    if not serving:
        return note("jobs", text, "none: it runs while a service runs")
    return wrong("jobs", text, "see the log: housekeeping postpones …")


def disk(data_dir: Path | None, database_bytes: int) -> Finding:
    """Check the free space for a database; `data_dir` is None on another machine, and may not exist yet."""
    shown = f"the database takes {bytes_shown(database_bytes)}"
    if data_dir is None:
        return fine("disk", f"{shown}; the free space is visible only on the server's machine")
    place = data_dir
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    text = f"{bytes_shown(free)} are free for {data_dir}; {shown}"
    enough = free >= max(FREE_MIN, database_bytes * FREE_SHARE)
    return fine("disk", text) if enough else wrong("disk", text, "make room, or move it")


def tables(sizes: Sizes, analytics_days: int | None) -> Iterator[Finding]:
    """Check the sizes of tables, and the number of transactions until old rows must be frozen."""
    largest = ", ".join(f"{name} {bytes_shown(size)}" for name, size in sizes.largest)
    problem = False
    if sizes.total > BACKED_UP_MAX:
        yield wrong(
            "tables", f"{bytes_shown(sizes.total)} altogether: {largest}", "see docs/scaling.md for the next steps"
        )
        problem = True
    if dict(sizes.largest).get("analytics_events", 0) > ANALYTICS_MAX and analytics_days is None:
        text = f"analytics events take {bytes_shown(dict(sizes.largest)['analytics_events'])} and are kept for ever"
        yield note("tables", text, "set SOLISYNC_ANALYTICS_DAYS")
        problem = True
    if sizes.oldest_transaction > TRANSACTIONS_MAX:
        text = f"rows of {sizes.oldest_transaction:,} transactions ago are not frozen"
        yield wrong("tables", text, "let autovacuum run, or VACUUM FREEZE: PostgreSQL stops writing at 2,000,000,000")
        problem = True
    if not problem:
        yield fine("tables", f"the largest: {largest}")
