"""COPY, in a thread: psycopg2 has no COPY for the connections that the reactor drives."""

import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from threading import Event
from typing import Any, TypeVar

import psycopg2
from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError
from twisted.internet.threads import deferToThreadPool

from ..errors import DatabaseError
from ..process.tasks import shielded
from .dsn import with_defaults
from .failures import reason

T = TypeVar("T")

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


class Copying:
    """A transaction on a connection of its own, which blocks."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._stopped = Event()

    def run(self, dsn: str, work: Callable[["Copying"], T]) -> T:
        """Connect, run `work` in a transaction, and commit. Raises DatabaseError."""
        try:
            with (
                closing(psycopg2.connect(with_defaults(dsn))) as self._connection,
                self._connection,
                self._connection.cursor() as self._cursor,
            ):
                return work(self)
        except psycopg2.Error as error:
            raise DatabaseError(reason(error)) from None

    def row(self, sql: str) -> tuple[Any, ...]:
        """Run a query, and return its only row."""
        self._cursor.execute(sql)
        (row,) = self._cursor.fetchall()
        return tuple(row)

    def copy(self, columns: str, rows: Iterable[Sequence[object]]) -> None:
        """Store rows; `columns` is the name of a table with the names of its columns."""
        lines = io.StringIO("".join("\t".join(map(_text, row)) + "\n" for row in rows))
        if self._stopped.is_set():
            raise DatabaseError("interrupted")
        self._cursor.copy_expert(f"COPY {columns} FROM STDIN", lines, 65_536)

    def stop(self) -> None:
        """Let a transaction in another thread fail, now or with its next COPY."""
        self._stopped.set()
        if self._connection is not None:
            self._connection.cancel()


async def copy(reactor: ReactorBase, dsn: str, work: Callable[[Copying], T]) -> T:
    """Run `work` in a transaction in a thread; a cancellation rolls the transaction back."""
    copying = Copying()
    running = deferToThreadPool(reactor, reactor.getThreadPool(), copying.run, dsn, work)
    try:
        return await shielded(running, on_late_failure=lambda failure: None)
    except CancelledError:
        copying.stop()
        await running  # the result, or None for a failure, see `shielded`
        raise


def _text(value: object) -> str:
    return "\\N" if value is None else str(value).translate(_ESCAPES)
