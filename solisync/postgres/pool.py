"""A pool of connections that replaces lost ones, and lends each to one borrower at a time.

docs/decisions.md "The database" has the reasons against the pool of txpostgres.
"""

from collections import Counter, deque
from contextlib import suppress
from contextvars import Context
from functools import partial

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..errors import ConnectionFailed, ConnectionLost, Unavailable
from ..process.logs import Reasons
from . import TIMES, PoolTimes
from .connection import Connection, ServerIdentity
from .dsn import each_host
from .opening import open_connection
from .race import staggered_race
from .statement import Statement

BORROWERS = 1_000  # the most that may wait at the same time
SESSIONS_PER_CONNECTION = 2  # the most sessions on the server for each of `size`, including abandoned ones


class Pool:
    """`size` connections with `statements` prepared, from `open` to `close`.

    Borrowers may come before `open`: they wait and are declined, as during an outage of the server.
    """

    _log = Logger()

    def __init__(
        self, *, reactor: ReactorBase, size: int, statements: tuple[Statement, ...], times: PoolTimes = TIMES
    ) -> None:
        self.times = times
        self._reactor = reactor
        self._size = size
        self._statements = statements
        self.replaced = 0  # the number of lost connections so far
        self._closed = False
        self._held = 0  # the number of open connections
        self._idle: list[Connection] = []
        self._lent: dict[Connection, float] = {}  # with the time when each loan is cut
        self._waiting: dict[Deferred[Connection], float] = {}  # in order, with the time when each is declined
        self._retiring: set[Connection] = set()  # lent connections to close when they are given back
        self._replacements = 0  # the number of calls of `replace_all` that had an effect
        self._abandoned: set[Connection] = set()  # see `_abandon`
        self._announced = False  # whether the log has the server
        self._hosts: deque[str] = deque()  # their DSNs, starting with the host that answered last
        self._reasons = Reasons()  # logged reasons of the current outage
        self._filling: Deferred[None] | None = None
        self._shrunk: Deferred[None] | None = None  # fires when a connection is lost
        self._emptied: Deferred[None] | None = None  # fires when no connection is lent
        self._lending = False
        self._sweep = LoopingCall(self._cut_overdue)
        self._sweep.clock = reactor

    @property
    def used(self) -> int:
        """The number of lent connections."""
        return len(self._lent)

    @property
    def idle(self) -> int:
        """The number of connections without a borrower."""
        return len(self._idle)

    @property
    def waiting(self) -> int:
        """The number of borrowers that wait for a connection."""
        return len(self._waiting)

    @property
    def abandoned(self) -> int:
        """The number of connections that were given up while the server still runs their last statement."""
        return len(self._abandoned)

    @property
    def servers(self) -> Counter[str]:
        """The number of connections to each server."""
        return Counter(connection.server.name for connection in (*self._idle, *self._lent))

    def open(self, dsn: str) -> None:
        """Begin to connect; from now on the pool fills itself and replaces lost connections."""
        self._hosts.extend(each_host(dsn))
        self._filling = Deferred.fromCoroutine(self._keep_full())
        self._filling.addErrback(self._log_unless_closed)
        self._begin_sweep()

    def _begin_sweep(self) -> None:
        if not self._sweep.running:
            self._sweep.start(self.times.sweep, now=False).addErrback(self._log_unless_closed)

    def _log_unless_closed(self, failure: Failure) -> None:
        if not self._closed:
            self._log.failure("the connection pool stopped reconnecting", failure)

    async def close(self, seconds: float) -> None:
        """Decline borrowers, wait up to `seconds` for lent connections, then close every connection."""
        self._closed = True
        if self._filling is not None:
            self._filling.cancel()
        while self._waiting:
            self._decline(next(iter(self._waiting)))
        if self._lent:
            self._emptied = Deferred()
            with suppress(TimeoutError):
                await self._emptied.addTimeout(seconds, self._reactor)
        if self._sweep.running:
            self._sweep.stop()
        for connection in [*self._idle, *self._lent, *self._abandoned]:
            connection.close()  # the server may still run statements of abandoned connections

    def borrow(self) -> Connection | Deferred[Connection]:
        """Lend a connection until `give_back`: an idle one, or the next free one, first come first served.

        Raises Unavailable if too many borrowers wait; the Deferred fails with it after `times.borrow`. A waiting
        borrower may cancel the Deferred. Fast path: returning an idle connection itself replaces a Deferred that has
        fired, see docs/performance.md.
        """
        if not self._waiting and (connection := self._lend_idle()) is not None:
            return connection
        if self._closed or len(self._waiting) >= BORROWERS:
            raise Unavailable
        self._begin_sweep()  # a borrower may come before `open`, and must be declined in time too
        waiter: Deferred[Connection] = Deferred(self._waiting.__delitem__)
        self._waiting[waiter] = self._reactor.seconds() + self.times.borrow
        return waiter

    def _lend_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()  # the most recently used: its caches are warm
            if connection.still_usable():
                self._lent[connection] = self._reactor.seconds() + self.times.work
                return connection
            connection.close()
        return None

    def _decline(self, waiter: Deferred[Connection]) -> None:
        del self._waiting[waiter]
        waiter.errback(Unavailable())

    def is_overdue(self, connection: Connection) -> bool:
        """Whether this connection has been lent for `times.work` or longer."""
        return self._reactor.seconds() >= self._lent[connection]

    def give_back(self, connection: Connection) -> None:
        """Take a connection back, and lend it to the next borrower immediately."""
        del self._lent[connection]
        connection.cancelled = False
        self._make_idle(connection)
        if not self._lent and self._emptied is not None:
            emptied, self._emptied = self._emptied, None
            emptied.callback(None)

    def replace_all(self, witness: Connection) -> None:
        """Replace every connection, and prefer the next host, because `witness` has found the server useless.

        Idle connections are closed now, lent ones when they are given back, and connections being made when they are
        open. Does nothing if `witness` is being replaced already.
        """
        if witness in self._retiring:
            return
        self._replacements += 1
        self._hosts.rotate(-1)
        self._retiring |= self._lent.keys()
        for connection in self._idle[:]:
            connection.close()

    def _make_idle(self, connection: Connection) -> None:
        if not connection.usable or self._closed or connection in self._retiring:
            if connection not in self._abandoned:
                connection.close()
        else:
            self._idle.append(connection)
            self._serve_waiting()  # first, so that the database works while the handler makes its reply

    def _serve_waiting(self) -> None:
        # A borrower that doesn't wait for the database gives its connection back inside this loop. Serving the next
        # borrower from there would recurse once for each of a thousand borrowers.
        if self._lending:
            return
        self._lending = True
        try:
            while self._waiting and (connection := self._lend_idle()) is not None:
                waiter = next(iter(self._waiting))
                del self._waiting[waiter]
                Context().run(waiter.callback, connection)  # not in the context of the request that gave it back
        finally:
            self._lending = False

    def _cut_overdue(self) -> None:
        """Decline borrowers that have waited too long, and give up connections that have been lent too long.

        Fast path: replaces a timer for each borrower, two thirds of the instructions of the pool, see
        docs/performance.md.
        """
        now = self._reactor.seconds()
        for waiter in [waiter for waiter, deadline in self._waiting.items() if now >= deadline]:
            self._decline(waiter)
        for connection in [connection for connection, deadline in self._lent.items() if now >= deadline]:
            # If the server is frozen or unreachable, every other connection would make a borrower wait as long.
            self.replace_all(connection)
            if not connection.running:
                connection.close()
            elif connection not in self._abandoned:
                self._abandon(connection)

    def _abandon(self, connection: Connection) -> None:
        """Give up a connection whose statement runs too long: fail it now, and close it when the server has ended it.

        On the server, a commit that waits for a standby keeps its session even after the client has hung up. A pool
        that closed such connections and made new ones would take up all sessions of the server. Such a commit isn't
        cancelled either, because PostgreSQL would then make its effects visible although no standby has them.
        """
        self._lose(connection)
        self._abandoned.add(connection)
        connection.when_lost(partial(self._abandoned.discard, connection))
        connection.abandon(ConnectionLost(f"no answer within {self.times.work:g} s"))

    async def _keep_full(self) -> None:
        while not self._closed:
            if self._held == self._size:
                self._shrunk = Deferred()
                await self._shrunk
                continue
            hosts, replacements = tuple(self._hosts), self._replacements
            position, connection = await staggered_race(
                self._reactor, [partial(self._keep_trying, host) for host in hosts], self.times.head_start
            )
            if self._replacements != replacements:  # the schema may have changed after it prepared its statements
                connection.close()
                continue
            for other in [each for each in self._abandoned if each.server.instance != connection.server.instance]:
                other.close()  # its server has been replaced or restarted
            if self._held + len(self._abandoned) >= SESSIONS_PER_CONNECTION * self._size:
                connection.close()
                await deferLater(self._reactor, self.times.reconnect)
                continue
            self._hosts.remove(hosts[position])
            self._hosts.appendleft(hosts[position])
            self._announce(connection.server)
            self._held += 1
            connection.when_lost(partial(self._lose, connection))
            connection.shield()
            self._make_idle(connection)

    def _announce(self, server: ServerIdentity) -> None:
        """Log which server is in use, if that is new."""
        if not self._reasons and server.name in self.servers:
            return
        again = " again" if self._announced else ""
        self._log.info("connected to the database{again}: {server}", again=again, server=server.name)
        if server.lacking and not self._statements:
            self._log.warn("a pooler is in front of the database, and the role needs {names}", names=server.lacking)
        self._announced = True
        self._reasons.forget()

    async def _keep_trying(self, host: str) -> Connection:
        while True:
            try:
                return await open_connection(self._reactor, host, statements=self._statements, times=self.times)
            except CancelledError:
                raise
            except ConnectionFailed as error:
                if self._reasons.is_new(str(error)):
                    self._log.warn("no connection to the database, still trying: {error}", error=error)
            except Exception:  # otherwise the pool would never connect again
                self._log.failure("no connection to the database, unexpected error")
            await deferLater(self._reactor, self.times.reconnect)

    def _lose(self, connection: Connection) -> None:
        self._held -= 1
        self.replaced += 1
        self._retiring.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if self._shrunk is not None:
            shrunk, self._shrunk = self._shrunk, None
            shrunk.callback(None)
