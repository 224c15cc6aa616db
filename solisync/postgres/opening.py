"""Opening a connection: what it sets on the server, which statements it prepares, and which server it has reached.

Behind a pooler that shares the connections of the server, a SET reaches whichever of them is free, and stays there for
whoever gets that one next. So there nothing is set: the role is to have it, see docs/high-availability.md "PgBouncer".
"""

from dataclasses import dataclass

import psycopg2
from twisted.internet.base import ReactorBase
from twisted.logger import Logger

from ..errors import ConnectionFailed
from . import libpq
from .dsn import with_defaults
from .libpq import LibpqConnection
from .statement import Row, Statement

# PostgreSQL returns a timestamptz in the time zone of the connection, and answers of the API are to be in UTC. Poolers
# know that setting, because the server reports it, and keep it for each of their clients.
_TIME_ZONE = "SET timezone = 'UTC'"

# Whatever the server, the database or the role prefers:
# - A statement that waited for a lock relies on seeing what was committed meanwhile, which other levels hide from it.
# - What is acknowledged must survive a crash of the server. For which standbys a commit waits as well, if synchronous
#   commits are not off, is up to the operator.
_SETTINGS = """
    SELECT set_config('default_transaction_isolation', 'read committed', false) WHERE {own};
    SELECT set_config('synchronous_commit', 'on', false) WHERE {own} AND current_setting('synchronous_commit') = 'off'
"""

# Limits kept by the server: a node that vanished must not keep its locks.
_TIMEOUTS = """
    SELECT set_config('statement_timeout', '5s', false), set_config('lock_timeout', '4s', false),
        set_config('idle_in_transaction_session_timeout', '10s', false)
    WHERE {own}
"""

# The address, the start time and, behind a pooler, those settings of the role that do not do what the above would.
_SERVER = """
    SELECT host(inet_server_addr()), inet_server_port(), pg_postmaster_start_time()::text, NOT direct, CASE
        WHEN direct THEN ''
        ELSE (
            SELECT coalesce(string_agg(name, ', ' ORDER BY name), '') FROM pg_settings
            WHERE (name, reset_val) IN (
                ('statement_timeout', '0'), ('lock_timeout', '0'), ('idle_in_transaction_session_timeout', '0'),
                ('synchronous_commit', 'off')
            ) OR (name = 'default_transaction_isolation' AND reset_val <> 'read committed')
        )
    END
    FROM (SELECT {direct} AS direct) AS way
"""

# A pooler in transaction mode prepares on one connection of the server, and executes on any of them.
PREPARED_TWICE, NOT_PREPARED = "42P05", "26000"
REMEDY = ": behind a pooler in transaction mode, set SOLISYNC_PREPARED_STATEMENTS=off"

_log = Logger()


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The server that a connection leads to.

    `name` is the host and port of the DSN; where something stands between, the address follows that the server has by
    its own account. No two servers are the same `instance`, nor one before and after a restart. `pooled` is whether a
    pooler stands between, and `lacking` names the settings that the role is to have then and does not.
    """

    name: str
    instance: str
    pooled: bool
    lacking: str


async def connect_and_set_up(
    reactor: ReactorBase, dsn: str, statements: tuple[Statement, ...], bounded: bool
) -> tuple[LibpqConnection, ServerIdentity]:
    """Connect, set the server's timeouts (unless not `bounded`), and prepare those `statements` that fit the schema.

    Raises what `libpq.connect` raises, and ConnectionFailed when a pooler shares the connection. Cancelling this closes
    the connection.
    """
    connection = await libpq.connect(reactor, with_defaults(dsn))
    try:
        direct = f"pg_backend_pid() = {connection.backend_pid}"  # a pooler tells a number of its own
        # who prepares statements has a connection of the server to itself
        own = "true" if statements else direct
        parts = [_TIME_ZONE, _SETTINGS, *([_TIMEOUTS] if bounded else []), _SERVER]
        rows = await connection.run("; ".join(parts).format(own=own, direct=direct), None)
        if statements:
            await _prepare(connection, statements)
    except BaseException:
        connection.close()
        raise
    return connection, _server(connection, rows[0])


def _server(connection: LibpqConnection, row: Row) -> ServerIdentity:
    address, port, started, pooled, lacking = row
    name = f"{connection.host}:{connection.port}"
    if address is not None and connection.peer != (address, port):
        name += f" ({address}:{port})"
    return ServerIdentity(name, f"{address}:{port} {started}", pooled, lacking)


async def _prepare(connection: LibpqConnection, statements: tuple[Statement, ...]) -> None:
    """Prepare the statements; one that doesn't fit the schema is left out, and fails when it is executed.

    A later version may have dropped a column that one statement of this version wants. Everything else works on.
    """
    try:
        await connection.run("; ".join(statement.preparation for statement in statements), None)
    except psycopg2.Error as error:
        if error.pgcode == PREPARED_TWICE:
            raise ConnectionFailed(f"{connection.host}:{connection.port}: {reason(error)}{REMEDY}") from None
        if not _is_misfit(error):
            raise
    else:
        return
    await connection.run("DEALLOCATE ALL", None)  # what came before the misfit is prepared, though the batch has failed
    for statement in statements:
        try:
            await connection.run(statement.preparation, None)
        except psycopg2.Error as error:
            if not _is_misfit(error):
                raise
            _log.warn("{name} does not fit the schema of the database: {why}", name=statement.name, why=reason(error))


def _is_misfit(error: psycopg2.Error) -> bool:
    """Whether the server calls it a "syntax error or access rule violation": no such table, column or function."""
    return (error.pgcode or "").startswith("42")


def reason(error: Exception) -> str:
    """The server's primary message alone: its details quote statements and rows, and so password hashes.

    For an error that doesn't come from the server, the text of the exception.
    """
    diagnostics = getattr(error, "diag", None)
    return getattr(diagnostics, "message_primary", None) or str(error).strip()
