"""Opening a connection: set the server's limits, prepare statements, and identify the server.

Behind a pooler that shares the server's connections, a SET reaches any free connection, and stays there for the next
client. So nothing is set there, and the role must have the settings, see docs/high-availability.md "PgBouncer".
"""

import os
import socket
from functools import partial

import psycopg2
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.error import ConnectionDone
from twisted.logger import Logger

from ..errors import ConnectionFailed, WrongSchema
from . import TIMES, PoolTimes
from .connection import Connection, ServerIdentity
from .dsn import each_address, each_host, server_of, with_defaults
from .failures import PREPARED_TWICE, REMEDY, reason
from .race import staggered_race
from .statement import Row, Statement

PORT = 5432  # libpq doesn't report the port if none was given

# PostgreSQL returns a timestamptz in the time zone of the connection, and the API promises UTC. This setting works
# behind poolers too: the server reports it, and so poolers keep it for each client.
_TIME_ZONE = "SET timezone = 'UTC'"

# These override the settings of the server, the database and the role:
# - The isolation level: a statement that waited for a lock must see what was committed during the wait.
# - Synchronous commits: an acknowledged change must survive a crash of the server. The operator may choose any other
#   level than off, and so the standbys that a commit waits for.
_SETTINGS = """
    SELECT set_config('default_transaction_isolation', 'read committed', false) WHERE {own};
    SELECT set_config('synchronous_commit', 'on', false) WHERE {own} AND current_setting('synchronous_commit') = 'off'
"""

# Time limits that the server keeps, because a node that vanishes must not hold its locks. A connection without limits
# lifts those that the role may have for a pooler.
_TIMEOUTS = """
    SELECT set_config(name, CASE WHEN {bounded} THEN limited ELSE '0' END, false)
    FROM (VALUES
        ('statement_timeout', '5s'), ('lock_timeout', '4s'), ('idle_in_transaction_session_timeout', '10s')
    ) AS timeouts (name, limited)
    WHERE {own}
"""

# The address, the start time, what is wrong if the role doesn't work in the schema public and, behind a pooler, the
# names of the above settings that the role lacks. pg_dump and psql use public, whatever the search_path.
_SERVER = """
    SELECT host(inet_server_addr()), inet_server_port(), pg_postmaster_start_time()::text, CASE
        WHEN current_schema() IS NULL THEN format(
            'role %I may use no schema of the database %I: GRANT USAGE ON SCHEMA public TO %1$I',
            current_user, current_database()
        )
        WHEN current_schema() <> 'public' THEN format(
            'role %I works in the schema %I of the database %I, and solisync needs public: ALTER ROLE %1$I IN DATABASE '
            '%3$I SET search_path = public, and remove a search_path from DATABASE_URL',
            session_user, current_schema(), current_database()
        )
        ELSE ''
    END, NOT direct, CASE
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

_log = Logger()


async def open_connection(
    reactor: ReactorBase,
    dsn: str,
    *,
    statements: tuple[Statement, ...] = (),
    bounded: bool = True,
    in_public: bool = True,
    times: PoolTimes = TIMES,
) -> Connection:
    """Connect, set the server's time limits if `bounded` and lift them if not, and prepare `statements` if they fit.

    The first host and address whose server answers as the DSN demands wins. Raises ConnectionFailed if none answers
    within `times.connect`, which counts for each separately. Raises WrongSchema, unless `in_public` is false, if the
    role would work in another schema than public.
    """

    async def try_address(address: str) -> Connection:
        opening = Deferred.fromCoroutine(_open(reactor, address, statements, bounded, times))
        try:
            return await opening.addTimeout(times.connect, reactor)
        except TimeoutError:
            raise ConnectionFailed(_in_words(f"no answer within {times.connect:g} s", address)) from None
        except (psycopg2.Error, ConnectionDone, ValueError, OSError) as error:
            raise ConnectionFailed(_in_words(str(error), address)) from None

    async def try_host(host: str) -> Connection:
        addresses = await each_address(reactor, host)
        attempts = [partial(try_address, address) for address in addresses]
        return (await staggered_race(reactor, attempts, times.head_start))[1]

    hosts = [partial(try_host, host) for host in each_host(dsn)]
    _, connection = await staggered_race(reactor, hosts, times.head_start)
    if in_public and connection.server.misplaced:
        connection.close()
        raise WrongSchema(connection.server.misplaced)
    return connection


async def _open(
    reactor: ReactorBase, dsn: str, statements: tuple[Statement, ...], bounded: bool, times: PoolTimes
) -> Connection:
    """Open a connection to one address; cancelling this closes the connection.

    Raises psycopg2.Error, ConnectionDone, ValueError or OSError. Raises ConnectionFailed if a pooler shares connections
    to the server.
    """
    connection = Connection(reactor, times)
    try:
        await connection.connect(with_defaults(dsn))
        direct = f"pg_backend_pid() = {_backend_pid(connection)}"
        # A connection that prepares statements doesn't share its connection to the server.
        own = "true" if statements else direct
        parts = "; ".join((_TIME_ZONE, _SETTINGS, _TIMEOUTS, _SERVER))
        rows = await connection.send(parts.format(own=own, direct=direct, bounded=bounded))
        server = _identify(connection, rows[0])
        if statements and not server.misplaced:
            await _prepare(connection, statements)
        connection.begin(server, prepared=bool(statements))
    except BaseException:
        connection.close()
        raise
    return connection


def _backend_pid(connection: Connection) -> int:
    """The id of the server's process as libpq received it when it connected; a pooler sends another number."""
    return int(connection.libpq.info.backend_pid)


def _identify(connection: Connection, row: Row) -> ServerIdentity:
    address, port, started, misplaced, pooled, lacking = row
    name = _host_and_port(connection)
    if address is not None and _peer(connection) != (address, port):
        name += f" ({address}:{port})"
    return ServerIdentity(name, f"{address}:{port} {started}", misplaced, pooled, lacking)


def _host_and_port(connection: Connection) -> str:
    """The host of the DSN, or the directory of the server's socket, and the port."""
    info = connection.libpq.info
    return f"{info.host or ''}:{info.port or PORT}"


def _peer(connection: Connection) -> tuple[str, int] | None:
    """The address and port of the other end of the TCP connection, or None for a unix socket."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        return None if end.family == socket.AF_UNIX else end.getpeername()[:2]


async def _prepare(connection: Connection, statements: tuple[Statement, ...]) -> None:
    """Prepare the statements; skip one that doesn't fit the schema, so that it fails only when executed.

    A later version may have dropped a column that a statement of this version needs. All other statements work.
    """
    try:
        await connection.send("; ".join(statement.preparation for statement in statements))
    except psycopg2.Error as error:
        if error.pgcode == PREPARED_TWICE:
            raise ConnectionFailed(f"{_host_and_port(connection)}: {reason(error)}{REMEDY}") from None
        if not _is_misfit(error):
            raise
    else:
        return
    await connection.send("DEALLOCATE ALL")  # statements before the misfit are prepared, though the batch failed
    for statement in statements:
        try:
            await connection.send(statement.preparation)
        except psycopg2.Error as error:
            if not _is_misfit(error):
                raise
            _log.warn("{name} does not fit the schema of the database: {why}", name=statement.name, why=reason(error))


def _is_misfit(error: psycopg2.Error) -> bool:
    """Whether it is a "syntax error or access rule violation": no such table, column or function."""
    return (error.pgcode or "").startswith("42")


def _in_words(text: str, dsn: str) -> str:
    """libpq's reason why there is no connection, without the indented lines of advice ("Is the server …?").

    Most messages of libpq name the server; this adds the name to the others.
    """
    lines = [line for line in text.splitlines() if not line.startswith("\t")]
    shown = " ".join(" ".join(lines).split())
    if shown.startswith("connection to server"):
        return shown
    return f"connection to server {server_of(dsn) or 'by default'} failed: {shown}"
