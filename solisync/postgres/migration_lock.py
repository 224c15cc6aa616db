"""The lock under which one node at a time migrates: an advisory lock, in an open transaction on a second connection.

A transaction keeps its server connection also behind a pooler in transaction mode, where a lock of the session would
pass to the next client of that connection. The server frees the lock when the connection ends, also when the process
was killed.

Nodes that start together poll for the lock rather than wait inside PostgreSQL, where the snapshot of a waiting
statement would block a CREATE INDEX CONCURRENTLY of the holder; a transaction of READ COMMITTED that waits for its next
statement has none. Each poll is a separate transaction: nodes that wait would otherwise keep the few connections that a
pooler has, and the node with the lock would never get its second one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from twisted.internet.base import ReactorBase
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ..errors import ConnectionFailed, FatalError
from .connection import Connection
from .opening import open_connection

LOCK_KEY = 0x736F6C6973796E63  # "solisync"
POLL_SECONDS = 0.2
LOCK_WAIT_SECONDS = 300.0

# Whatever time limits the role has: a migration may take long. Not every server knows each of them.
BEGIN = """
    BEGIN ISOLATION LEVEL READ COMMITTED;
    SELECT set_config(name, '0', true) FROM pg_settings
    WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')
"""

_SERVER = "SELECT current_setting('server_encoding'), current_setting('transaction_read_only')::bool"

_log = Logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationTimes:
    """How a migration waits for others, in seconds."""

    notice: float = 1.0  # how long to wait for a node that migrates before that is logged
    pause: float = 5.0  # between two attempts to get tables that others use
    patience: float = 300.0  # for these tables, in all


MIGRATION_TIMES = MigrationTimes()


@asynccontextmanager
async def migrating(
    reactor: ReactorBase, dsn: str, times: MigrationTimes = MIGRATION_TIMES
) -> AsyncIterator[Connection]:
    """A connection, while another one holds the lock: no other node migrates, and no service opens the database.

    When the connection with the lock is lost, the other one is closed. Raises ConnectionFailed, also for a server that
    takes no writes, or ConnectionLost, and FatalError for a wrong encoding and after LOCK_WAIT_SECONDS.
    """
    holder = await open_connection(reactor, dsn, bounded=False)
    try:
        await _check(holder)
        await _lock(reactor, holder, times.notice)
        connection = await open_connection(reactor, dsn, bounded=False)
        holder.when_lost(connection.close)
        yield connection
    finally:
        holder.close()


async def _check(holder: Connection) -> None:
    ((encoding, read_only),) = await holder.execute(_SERVER)
    if encoding != "UTF8":
        raise FatalError(
            f"solisync: the encoding of this database is {encoding}, which can't store the names of all players:"
            " make a database with ENCODING 'UTF8' TEMPLATE template0, and move data with solisync backup and restore"
        )
    if read_only:
        raise ConnectionFailed(f"{holder.server.name} takes no writes: it is a standby, or set to be read-only")


async def _lock(reactor: ReactorBase, holder: Connection, notice: float) -> None:
    began = reactor.seconds()
    noticed = False
    while True:
        ((locked,),) = await holder.execute(f"{BEGIN}; SELECT pg_try_advisory_xact_lock({LOCK_KEY})")
        if locked:
            return
        await holder.execute("ROLLBACK")
        waited = reactor.seconds() - began
        if waited > LOCK_WAIT_SECONDS:
            raise FatalError(f"solisync: another node has been migrating for {LOCK_WAIT_SECONDS:g} s")
        if waited > notice and not noticed:
            _log.info("another node is migrating, waiting", waiting=True)
            noticed = True
        await deferLater(reactor, POLL_SECONDS)
