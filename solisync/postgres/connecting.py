"""Connecting to a server by txpostgres, and to several servers in a staggered race. No other module uses txpostgres.

Statements run directly on psycopg2's connection, see `Connection`. A cursor of txpostgres would replace its connection
in the reactor for every statement, and deliver the result one turn of the reactor later: half of a statement's time.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import psycopg2
from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred, FailureGroup, race
from txpostgres import txpostgres

from ..errors import ConnectionFailed

T = TypeVar("T")


async def connect(reactor: ReactorBase, dsn: str) -> Any:
    """Connect to the server of a DSN; return psycopg2's connection, in asynchronous mode and not in the reactor.

    There is no time limit, because libpq ignores connect_timeout when it connects asynchronously. Cancelling the call
    leaves nothing in the reactor. Raises psycopg2.Error, ConnectionDone, ValueError or OSError.
    """
    attempt = _Attempt(reactor)
    try:
        await attempt.connect(dsn)
        reactor.removeReader(attempt)
        return attempt.pollable()
    except BaseException:
        if attempt.pollable() is not None:
            attempt.close()
        raise


class _Attempt(txpostgres.Connection):  # type: ignore[misc]
    """One attempt to connect, polled by txpostgres.

    It overrides these members of txpostgres.Connection, for these reasons. Check each before upgrading txpostgres:

    - `poll`: cancelling its Deferred asks the server to cancel, over a second connection, which blocks the reactor.
    - `continuePolling`: it keeps the reactor's registration of a socket that libpq may have closed. Errors of the
      registration reach the reactor, which then drops the connection without an error.
    - `doRead`: it registers the connection for reading again, even if libpq waits to write.
    """

    def poll(self) -> Deferred[Any]:
        outcome: Deferred[Any] = Deferred()
        polling: Deferred[Any] = super().poll()
        polling.addBoth(lambda result: None if outcome.called else outcome.callback(result))
        return outcome

    def continuePolling(self, swallowErrors: bool = False) -> None:
        try:
            # libpq may open another socket while it connects. An event for the previous socket of that number could
            # also have left a registration of the other kind.
            self.reactor.removeReader(self)
            self.reactor.removeWriter(self)
            super().continuePolling(swallowErrors)
        except (psycopg2.Error, ValueError, OSError):  # libpq has lost the socket
            self.close()

    def doRead(self) -> None:
        super(txpostgres.Connection, self).doRead()


async def staggered_race(
    reactor: ReactorBase, attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]], head_start: float
) -> tuple[int, T]:
    """Start each attempt when the previous one fails or is `head_start` seconds old; the first success wins.

    Returns the index and the result of the winner, and cancels the others. If all fail, raises ConnectionFailed with
    every reason, or the first error of another type.
    """
    turns: list[Deferred[None]] = [Deferred() for _ in range(len(attempts) + 1)]

    def begin(number: int) -> None:
        if not turns[number].called:  # otherwise the attempt has started, or was cancelled
            turns[number].callback(None)

    async def take_turn(number: int) -> T:
        await turns[number]
        timer = reactor.callLater(head_start, begin, number + 1)
        try:
            return await attempts[number]()
        except CancelledError:
            raise
        except Exception:
            begin(number + 1)
            raise
        finally:
            if timer.active():
                timer.cancel()

    begin(0)
    try:
        return await race([Deferred.fromCoroutine(take_turn(number)) for number in range(len(attempts))])
    except FailureGroup as group:
        for failure in group.failures:
            failure.trap(ConnectionFailed)  # raises any other error, such as a cancellation
        raise ConnectionFailed("; ".join(str(failure.value) for failure in group.failures)) from None
