"""What commands ask a server about itself: SQL on catalogs and settings, none of it on solisync's own tables.

It is not in storage/ because it has no noun, and because it must also run on a database without a schema, or of a
version that the schema doesn't fit.
"""

from dataclasses import dataclass
from datetime import datetime

from .connection import Connection

_MAJOR = "SELECT current_setting('server_version_num')::int / 10000"

_SERVER = """
    SELECT current_setting('server_version_num')::int / 10000, current_setting('server_version'),
        current_setting('server_encoding'), current_setting('transaction_read_only')::bool,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
        coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
"""

_DATABASE = "SELECT current_setting('server_version'), current_database(), pg_database_size(current_database())"

_UNUSABLE = """
    SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace
        AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
            AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
    ORDER BY relname
"""

# Extensions may have brought relations of their own.
_IS_EMPTY = """
    SELECT NOT EXISTS (
        SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND nspname !~ '^pg_(toast|temp)' AND NOT EXISTS (
            SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e'
        )
    )
"""


@dataclass(frozen=True, slots=True)
class Server:
    """What the service needs of a server, and of its role there."""

    major: int
    version: str
    encoding: str
    read_only: bool
    connections: int  # that are not reserved for superusers
    may_create: bool


@dataclass(frozen=True, slots=True)
class Database:
    """The version of the server, and the name and size of one database there."""

    server_version: str
    name: str
    size: int


async def major_version(connection: Connection) -> int:
    """The major version of the server, such as 18."""
    ((major,),) = await connection.execute(_MAJOR)
    return int(major)


async def clock(connection: Connection) -> datetime:
    """The time of the server."""
    ((now,),) = await connection.execute("SELECT clock_timestamp()")
    assert isinstance(now, datetime)
    return now


async def server(connection: Connection) -> Server:
    """The server as this role sees it."""
    (row,) = await connection.execute(_SERVER)
    return Server(*row)


async def database(connection: Connection) -> Database:
    """The database of this connection."""
    (row,) = await connection.execute(_DATABASE)
    return Database(*row)


async def unusable_tables(connection: Connection) -> list[str]:
    """The names of tables that this role may not read and write."""
    return [name for (name,) in await connection.execute(_UNUSABLE)]


async def is_empty(connection: Connection) -> bool:
    """Whether nothing has been made in this database: no table, view or sequence in any schema."""
    ((empty,),) = await connection.execute(_IS_EMPTY)
    return bool(empty)
