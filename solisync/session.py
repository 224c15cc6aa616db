"""One PostgreSQL connection: the only module that knows txpostgres and psycopg2.

txpostgres.Connection does the polling; everything a long-lived service needs around it is here: connecting within
a bound, noticing that an idle connection died, closing without leaving a stale reader in the reactor, and telling
failures that may be retried from those that may not.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import psycopg2
from psycopg2 import extensions
from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall
from txpostgres import txpostgres

from .errors import ConnectionFailed, ConnectionLost, DatabaseError, TransactionAborted

CONNECT_SECONDS = 3.0

Row = tuple[Any, ...]

# SQLSTATEs after which a fresh connection is the cure: 25006, the server became a standby; 0A000, a migration
# changed what a prepared statement returns.
_OUTDATED = frozenset({"25006", "0A000"})
_LOST = frozenset({"57P01", "57P02", "57P03"})  # shutting down, crashed, starting up; class 08 as well
_DEADLOCK_OR_SERIALIZATION = frozenset({"40P01", "40001"})

# Standard server-side bounds of every session: a client that is gone must not keep locks.
_TIMEOUTS = "SET statement_timeout = '5s'; SET lock_timeout = '4s'; SET idle_in_transaction_session_timeout = '10s'"


@dataclass(frozen=True)
class Statement:
    """A named SQL statement with parameters $1, $2, …; prepared on every connection unless that is switched off."""

    name: str
    sql: str

    @cached_property
    def preparation(self) -> str:
        """The SQL that prepares this statement."""
        return f"PREPARE {self.name} AS {self.sql}"

    @cached_property
    def execution(self) -> str:
        """The SQL that runs it where it is prepared, with one placeholder for each parameter."""
        count = max((int(number) for number in re.findall(r"\$(\d+)", self.sql)), default=0)
        return f"EXECUTE {self.name}({', '.join(['%s'] * count)})" if count else f"EXECUTE {self.name}"

    @cached_property
    def inline(self) -> str:
        """The whole statement with placeholders %(1)s, %(2)s, …, for connections that can't keep prepared ones."""
        return re.sub(r"\$(\d+)", r"%(\1)s", self.sql.replace("%", "%%"))


class _Connection(txpostgres.Connection):  # type: ignore[misc]
    on_lost: Callable[[], None] | None = None

    def doRead(self) -> None:
        # Reached while idle only. The server hung up: txpostgres would let that escape into the reactor's log.
        try:
            super().doRead()
        except psycopg2.Error:
            self.close()

    def close(self) -> None:
        # A cursor that is still polling is the reactor's reader for this socket. Left there, it would shadow
        # whichever connection gets the same file descriptor next.
        for cursor in list(self._cursors):
            self.reactor.removeReader(cursor)
            self.reactor.removeWriter(cursor)
        super().close()
        if self.on_lost is not None:
            self.on_lost()


class Session:
    """A connection that runs one statement at a time; closed on the first sign that it can't be trusted."""

    def __init__(self, connection: _Connection, *, prepared: bool) -> None:
        self._connection = connection
        self._prepared = prepared

    @classmethod
    async def open(
        cls,
        reactor: ReactorBase,
        dsn: str,
        *,
        statements: tuple[Statement, ...] = (),
        bounded: bool = True,
    ) -> "Session":
        """Connect, set the session's timeouts (unless not `bounded`) and prepare `statements`.

        Raises ConnectionFailed, also after CONNECT_SECONDS without an answer: libpq ignores connect_timeout when
        it connects asynchronously.
        """
        connection = _Connection(reactor)
        timer: IDelayedCall | None = None
        try:
            # txpostgres sets _connection before it first waits, so the timer always finds it
            connecting = connection.connect(dsn, **_defaults(dsn))
            timer = reactor.callLater(CONNECT_SECONDS, connection.close)
            await connecting
            setup = [_TIMEOUTS] if bounded else []
            setup += [statement.preparation for statement in statements]
            if setup:
                await connection.cursor().execute("; ".join(setup))
        except (psycopg2.Error, ConnectionDone, CancelledError) as error:
            if connection.pollable() is not None:
                connection.close()
            timed_out = timer is not None and not timer.active()
            reason = f"no answer within {CONNECT_SECONDS:g} s" if timed_out else " ".join(str(error).split())
            raise ConnectionFailed(reason) from None
        finally:
            if timer is not None and timer.active():
                timer.cancel()
        return cls(connection, prepared=bool(statements))

    async def run(self, statement: Statement, *parameters: object, opening: str = "") -> list[Row]:
        """Run `statement` and return its rows; `opening` is SQL to send in front of it, in the same round trip."""
        if self._prepared:
            return await self.execute(opening + statement.execution, parameters)
        named = {str(number): value for number, value in enumerate(parameters, 1)}
        return await self.execute(opening + statement.inline, named)

    async def execute(self, sql: str, parameters: tuple[object, ...] | Mapping[str, object] = ()) -> list[Row]:
        """Run any SQL and return the rows of its last statement.

        Raises TransactionAborted for what left nothing behind and may be run again, ConnectionLost when the
        connection ended meanwhile (only the caller knows whether a commit was on its way), else DatabaseError.
        """
        try:
            cursor = self._connection.cursor()
            await cursor.execute(sql, parameters or None)
            return cast(list[Row], cursor.fetchall()) if cursor.description else []
        except CancelledError as error:  # what txpostgres makes of 57014
            raise DatabaseError("the statement was cancelled, most likely by statement_timeout") from error
        except (psycopg2.Error, ConnectionDone) as error:
            code = getattr(error, "pgcode", None) or ""
            if code in _LOST or code.startswith("08") or not self._open:
                self.close()
                raise ConnectionLost(f"connection lost: {error}".strip()) from error
            if code in _OUTDATED:
                self.close()
                raise TransactionAborted(str(error).strip()) from error
            if code in _DEADLOCK_OR_SERIALIZATION:
                raise TransactionAborted(str(error).strip()) from error
            raise DatabaseError(str(error).strip()) from error

    @property
    def _open(self) -> bool:
        return not cast(bool, self._connection.disconnected)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open on the server; asks libpq, not the server."""
        return self._is(extensions.TRANSACTION_STATUS_INTRANS, extensions.TRANSACTION_STATUS_INERROR)

    @property
    def failed(self) -> bool:
        """Whether the open transaction can only be rolled back: PostgreSQL would answer COMMIT with a rollback."""
        return self._is(extensions.TRANSACTION_STATUS_INERROR)

    @property
    def usable(self) -> bool:
        """Whether the next user gets a clean connection: open, nothing running, no transaction left behind."""
        return self._is(extensions.TRANSACTION_STATUS_IDLE)

    def _is(self, *statuses: int) -> bool:
        return self._open and self._connection.get_transaction_status() in statuses

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is closed, by whichever side."""

        def once() -> None:
            self._connection.on_lost = None
            callback()

        self._connection.on_lost = once

    def close(self) -> None:
        """Close the connection now; a statement that is running fails with TransactionAborted."""
        if self._open:
            self._connection.close()


def _defaults(dsn: str) -> dict[str, object]:
    """Connection parameters that the DSN doesn't set itself."""
    given = extensions.parse_dsn(dsn)
    wanted = {"application_name": "solisync", "keepalives_idle": 30, "tcp_user_timeout": 10_000}
    return {name: value for name, value in wanted.items() if name not in given}


def check_dsn(dsn: str) -> None:
    """Raise ValueError, naming no part of the DSN, when libpq can't read it."""
    try:
        extensions.parse_dsn(dsn)
    except psycopg2.Error:
        raise ValueError("is neither a postgresql:// URI nor a libpq keyword=value string") from None
