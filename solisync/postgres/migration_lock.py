"""The lock that lets one node at a time migrate: an advisory lock, in an open transaction on a second connection.

Behind a pooler in transaction mode, only a transaction keeps its connection to the server: a lock of the session would
pass to the next client of that connection. The server frees the lock when the connection ends, even if the process was
killed.

Nodes that start together poll for the lock. If they waited inside PostgreSQL, the snapshot of a waiting statement would
block a CREATE INDEX CONCURRENTLY of the node with the lock; an idle transaction of READ COMMITTED has no snapshot. Each
poll is a separate transaction. Otherwise waiting nodes would keep the few connections of a pooler, and the node with
the lock would never get its second one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from twisted.internet.base import ReactorBase
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ..errors import ConnectionFailed, Declined, FatalError, WrongSchema
from .connection import Connection
from .opening import open_connection

LOCK_KEY = 0x736F6C6973796E63  # "solisync"
POLL_SECONDS = 0.2

# Lifts the role's time limits, because a migration may take long. Not every server knows all of these settings.
BEGIN = """
    BEGIN ISOLATION LEVEL READ COMMITTED;
    SELECT set_config(name, '0', true) FROM pg_settings
    WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')
"""

_SERVER = "SELECT current_setting('server_encoding'), current_setting('transaction_read_only')::bool"

_log = Logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationTimes:
    """The times for which a migration waits, in seconds."""

    notice: float = 1.0  # the wait for another node's migration before it is logged
    wait: float = 300.0  # the whole wait for it; then a command ends, and a service waits again
    pause: float = 5.0  # the pause between two attempts while tables are in use
    patience: float = 300.0  # the total wait for such tables


MIGRATION_TIMES = MigrationTimes()


@asynccontextmanager
async def migrating(
    reactor: ReactorBase, dsn: str, times: MigrationTimes = MIGRATION_TIMES
) -> AsyncIterator[Connection]:
    """Yield a connection while a second one holds the lock: no other node migrates, and no service opens the database.

    If the connection with the lock is lost, the yielded one is closed. Raises ConnectionFailed, also for a server that
    accepts no writes, or ConnectionLost; raises Declined if another node keeps the lock for `times.wait`. Raises
    FatalError for a wrong encoding or schema.
    """
    try:
        holder = await open_connection(reactor, dsn, bounded=False)
    except WrongSchema as error:
        raise FatalError(f"solisync: {error}") from None
    try:
        await _check(holder)
        await _lock(reactor, holder, times)
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
            " create another one with ENCODING 'UTF8' TEMPLATE template0, and move data by solisync backup and restore"
        )
    if read_only:
        raise ConnectionFailed(f"{holder.server.name} accepts no writes: it is a standby, or set to be read-only")


async def _lock(reactor: ReactorBase, holder: Connection, times: MigrationTimes) -> None:
    began = reactor.seconds()
    noticed = False
    while True:
        ((locked,),) = await holder.execute(f"{BEGIN}; SELECT pg_try_advisory_xact_lock({LOCK_KEY})")
        if locked:
            return
        await holder.execute("ROLLBACK")
        waited = reactor.seconds() - began
        if waited > times.wait:
            raise Declined(f"another node has been migrating for {times.wait:g} s")
        if waited > times.notice and not noticed:
            _log.info("another node is migrating, waiting", waiting=True)
            noticed = True
        await deferLater(reactor, POLL_SECONDS)
