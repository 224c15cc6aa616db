"""Queries of a server's catalogs and settings, but not of solisync's tables.

They aren't in storage/ because they belong to no resource, and because they must also run on a database without a
schema, or with the schema of another version.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from ..postgres.connection import Connection

_MAJOR = "SELECT current_setting('server_version_num')::int / 10000"

_SERVER = """
    SELECT current_setting('server_version_num')::int / 10000, current_setting('server_version'),
        current_setting('server_encoding'), current_setting('transaction_read_only')::bool,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - coalesce(current_setting('reserved_connections', true)::int, 0),
        (
            SELECT least(nullif(rolconnlimit, -1), nullif(datconnlimit, -1)) FROM pg_roles, pg_database
            WHERE rolname = session_user AND datname = current_database() AND NOT rolsuper
        ),
        coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
"""

_DATABASE = "SELECT current_setting('server_version'), current_database(), pg_database_size(current_database())"

# Any role may call this function. A server that was copied or promoted keeps the identifier.
_IDENTITY = """
    SELECT system_identifier || '/' || oid FROM pg_control_system(), pg_database WHERE datname = current_database()
"""

# A role sees the names of its own connections. A service and its commands use the same role.
_SERVICE_CONNECTIONS = """
    SELECT count(*) FROM pg_stat_activity AS other JOIN pg_stat_activity AS own
        USING (datid, usesysid, application_name)
    WHERE own.pid = pg_backend_pid() AND other.pid <> own.pid
"""

_UNUSABLE = """
    SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace
        AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
            AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
    ORDER BY relname
"""

# pg_dump reads every table and sequence but those of extensions. A row for each statement that grants what is missing.
_UNREADABLE = """
    WITH relations AS (
        SELECT relname, nspname, CASE relkind WHEN 'S' THEN 'SEQUENCES' ELSE 'TABLES' END AS kind,
            has_schema_privilege(nspname, 'USAGE') AS enters, has_table_privilege(pg_class.oid, 'SELECT') AS reads
        FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE relkind IN ('r', 'p', 'S') AND nspname <> 'information_schema' AND nspname !~ '^pg_' AND NOT EXISTS (
            SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
        )
    )
    SELECT array_agg(relname::text ORDER BY relname), concat(
        CASE WHEN NOT enters THEN format('GRANT USAGE ON SCHEMA %I TO %I; ', nspname, current_user) END,
        format('GRANT SELECT ON ALL %s IN SCHEMA %I TO %I', kind, nspname, current_user)
    )
    FROM relations WHERE NOT (enters AND reads) GROUP BY nspname, kind, enters ORDER BY nspname, kind
"""

# The settings by which the server logs statements of this role that show data, with a value that logs none.
_LOGGING = """
    SELECT quote_ident(session_user), array_agg(name || ' = ' || safe ORDER BY name)
    FROM (VALUES ('log_min_error_statement', 'panic'), ('log_statement', 'none'), ('log_min_duration_statement', '-1'))
        AS wanted (name, safe)
    WHERE current_setting(name) <> safe AND (name, current_setting(name)) <> ('log_statement', 'ddl')
"""

# Relations of extensions don't count.
_IS_EMPTY = """
    SELECT NOT EXISTS (
        SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND nspname !~ '^pg_(toast|temp)' AND NOT EXISTS (
            SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
        )
    )
"""


# A role without the right to see other roles' connections gets rows without a state.
_STANDBYS = """
    SELECT coalesce(nullif(application_name, ''), client_addr::text, 'a standby'), sync_state IN ('sync', 'quorum'),
        coalesce(replay_lag, interval '0'),
        coalesce(pg_wal_lsn_diff(pg_current_wal_flush_lsn(), replay_lsn), 0)::bigint, state IS NULL
    FROM pg_stat_replication WHERE state IS NULL OR state IN ('streaming', 'catchup')
    ORDER BY 1
"""

_SIZES = """
    SELECT pg_database_size(current_database()), (SELECT age(datfrozenxid) FROM pg_database
        WHERE datname = current_database()),
        ARRAY(SELECT relname::text FROM largest), ARRAY(SELECT size FROM largest)
"""
_LARGEST = """
    WITH largest AS (
        SELECT relname, pg_total_relation_size(oid) AS size FROM pg_class
        WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY 2 DESC, 1 LIMIT 3
    )
"""

# On one machine, both ends of a connection have the same address, or none on a unix socket.
_DATA_DIRECTORY = """
    SELECT current_setting('data_directory')
    WHERE coalesce(inet_server_addr() = inet_client_addr(), true) AND pg_has_role('pg_read_all_settings', 'member')
    UNION ALL SELECT NULL LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Standby:
    """A server that replicates this one, and its delay."""

    name: str
    synchronous: bool
    behind: timedelta
    behind_bytes: int


@dataclass(frozen=True, slots=True)
class Replication:
    """The connected `standbys`, which may be `hidden` from this role; `waits_for` names those that commits wait for."""

    waits_for: str
    standbys: list[Standby]
    hidden: bool


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of the database and of its largest tables, and the age in transactions of its oldest unfrozen row."""

    total: int
    oldest_transaction: int
    largest: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The facts about a server and its role that decide whether the service can run."""

    major: int
    version: str
    encoding: str
    read_only: bool
    connections: int  # without those reserved for some roles
    connection_limit: int | None  # of the role or of the database
    may_create: bool


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """The version of the server, and the name and size of one database there."""

    server_version: str
    name: str
    size: int


async def major_version(connection: Connection) -> int:
    """The major version of the server, such as 18."""
    ((major,),) = await connection.execute(_MAJOR)
    return int(major)


async def clock(connection: Connection) -> datetime:
    """The time on the server's clock."""
    ((now,),) = await connection.execute("SELECT clock_timestamp()")
    assert isinstance(now, datetime)
    return now


async def server(connection: Connection) -> ServerFacts:
    """The facts about the server, as this role sees it."""
    (row,) = await connection.execute(_SERVER)
    return ServerFacts(*row)


async def database(connection: Connection) -> DatabaseFacts:
    """The facts about the database of this connection."""
    (row,) = await connection.execute(_DATABASE)
    return DatabaseFacts(*row)


async def identity(connection: Connection) -> str:
    """The identifier of this database: its standbys have the same one, a restored copy has another."""
    ((found,),) = await connection.execute(_IDENTITY)
    return str(found)


async def service_connections(connection: Connection) -> int:
    """The number of connections of services and other running commands to this database."""
    ((count,),) = await connection.execute(_SERVICE_CONNECTIONS)
    return int(count)


async def replication(connection: Connection) -> Replication:
    """The standbys of a primary."""
    ((waits_for,),) = await connection.execute("SELECT current_setting('synchronous_standby_names')")
    rows = await connection.execute(_STANDBYS)
    hidden = any(row[-1] for row in rows)
    return Replication(waits_for, [] if hidden else [Standby(*row[:-1]) for row in rows], hidden)


async def sizes(connection: Connection) -> Sizes:
    """The sizes of the database and of its largest tables."""
    ((total, oldest, names, bytes_of),) = await connection.execute(_LARGEST + _SIZES)
    return Sizes(total, oldest, list(zip(names, bytes_of, strict=True)))


async def data_directory(connection: Connection) -> str | None:
    """The data directory of a server on this machine, or None if this role may not see it."""
    ((directory,),) = await connection.execute(_DATA_DIRECTORY)
    return None if directory is None else str(directory)


async def unusable_tables(connection: Connection) -> list[str]:
    """The names of tables that this role may not read and write."""
    return [name for (name,) in await connection.execute(_UNUSABLE)]


async def unreadable(connection: Connection) -> list[tuple[list[str], str]]:
    """The tables and sequences that a backup by this role can't read, and for each group the GRANT that it lacks."""
    return [(names, grant) for names, grant in await connection.execute(_UNREADABLE)]


async def logging(connection: Connection) -> tuple[str, list[str]]:
    """This role, quoted, and the settings to change so that the server logs none of its statements with data."""
    ((role, settings),) = await connection.execute(_LOGGING)
    return str(role), settings or []


async def is_empty(connection: Connection) -> bool:
    """Whether this database is empty: no table, view or sequence in any schema."""
    ((empty,),) = await connection.execute(_IS_EMPTY)
    return bool(empty)
