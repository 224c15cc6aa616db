"""Checks of what a database has left: standbys, disk, sizes of tables (docs/scaling.md)."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from ..postgres.introspection import Replication, ServerFacts, Sizes
from ..rules.texts import bytes_shown
from ..settings.settings import OTHER_CONNECTIONS, ServingSettings
from .findings import Finding, fine, note, wrong

GIB = 2**30
FREE_MIN = 2**30
FREE_SHARE = 0.1  # of the database, which needs room for the log, for indexes that are built anew, and to grow
BACKED_UP_MAX = 2 * 2**40  # what a backup and a restore often manage in the time there is for them
ANALYTICS_MAX = 10 * GIB
TRANSACTIONS_MAX = 1_000_000_000  # half of those after which PostgreSQL takes no more writes
LAG_SECONDS, LAG_BYTES = 10.0, 64 * 2**20


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


def replication(found: Replication) -> Iterator[Finding]:
    """Check that commits wait for a standby that is there, and that no standby is far behind."""
    if found.hidden:
        yield note("standbys", "this role may not look at them", "GRANT pg_monitor to it")
        return
    if found.waits_for and not any(standby.synchronous for standby in found.standbys):
        text = f"commits wait for {found.waits_for}, and no such standby is connected: nothing can be written"
        yield wrong("standbys", text, "start it, or set synchronous_standby_names to those that there are")
    elif found.standbys and not found.waits_for:
        yield note(
            "standbys",
            "commits wait for none of them: what was acknowledged last is lost with the primary",
            "set synchronous_standby_names, or Patroni's synchronous_mode: docs/high-availability.md",
        )
    elif found.standbys:
        names = ", ".join(standby.name for standby in found.standbys if standby.synchronous)
        yield fine("standbys", f"{len(found.standbys)} connected; commits wait for {names}")
    for standby in found.standbys:
        if standby.behind > timedelta(seconds=LAG_SECONDS) or standby.behind_bytes > LAG_BYTES:
            text = f"{standby.name} is {bytes_shown(standby.behind_bytes)}"
            text += f" and {standby.behind.total_seconds():.0f} s behind the primary"
            yield wrong("standbys", text, "look at its disk and its network: a failover to it would take as long")


def disk(data_dir: Path | None, database_bytes: int) -> Finding:
    """Check the free space for a database, in a directory if it can be seen from here; it may be yet to come."""
    shown = f"the database takes {bytes_shown(database_bytes)}"
    if data_dir is None:
        return fine("disk", f"{shown}; how much is free can be seen on the server's own machine alone")
    place = data_dir
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    text = f"{bytes_shown(free)} are free for {data_dir}; {shown}"
    enough = free >= max(FREE_MIN, database_bytes * FREE_SHARE)
    return fine("disk", text) if enough else wrong("disk", text, "make room, or move it")


def tables(sizes: Sizes, analytics_days: int | None) -> Iterator[Finding]:
    """Check what grows without bound, and how many transactions are left until old rows must be frozen."""
    largest = ", ".join(f"{name} {bytes_shown(size)}" for name, size in sizes.largest)
    problem = False
    if sizes.total > BACKED_UP_MAX:
        yield wrong(
            "tables", f"{bytes_shown(sizes.total)} altogether: {largest}", "see docs/scaling.md for what comes next"
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
