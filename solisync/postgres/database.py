"""The database as the rest of solisync sees it: `transact` and `once`, over a pool of connections that heals.

Two decisions a reader may question. When a client hangs up, Twisted cancels its handler; but a transaction that has
begun runs to its end, and the handler learns of it only then: txpostgres would hand the connection on in the middle of
a transaction. And the pool is ours: txpostgres' own never replaces a dead connection and waits without bound.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..errors import ConnectionFailed, ConnectionLost, DatabaseError, Outdated, Refused, TransactionAborted, Unavailable
from .dsn import each_host
from .session import Session
from .staggered import staggered_race
from .statement import Row, Statement, Step

BORROW_SECONDS = 2.0  # how long work waits for a connection before it is declined
BORROWERS = 1_000  # how much work may wait at once
WORK_SECONDS = 6.0  # how long one transaction may take; above statement_timeout, for a server that is frozen
CUT_SECONDS = 0.25  # how often to look for what waits or works too long
RECONNECT_SECONDS = 0.5
ATTEMPTS = 3

P = ParamSpec("P")
T = TypeVar("T")


class Transaction:
    """What a storage function works with: it runs statements inside the transaction it was given."""

    def __init__(self, session: Session, *, opening: str = "") -> None:
        self._session = session
        self._opening = opening
        self._committed = False

    @property
    def uncommitted(self) -> bool:
        """Whether a statement has been run and is yet to be committed."""
        return not self._opening and not self._committed

    async def run(self, statement: Statement, *parameters: object) -> list[Row]:
        """Run `statement` and return its rows."""
        return await self.run_all((statement, *parameters))

    async def run_all(self, *steps: Step) -> list[Row]:
        """Run statements with their parameters in one round trip; returns the rows of the last."""
        return await self._send(steps)

    async def commit_with(self, *steps: Step) -> None:
        """Run statements and commit, in one round trip: the end of a transaction."""
        try:
            await self._send(steps, "; COMMIT")
        except ConnectionLost as error:
            raise _unknown(error) from error
        self._committed = True

    async def _send(self, steps: tuple[Step, ...], after: str = "") -> list[Row]:
        assert not self._committed, "the transaction has ended"
        before, self._opening = self._opening, ""
        return await self._session.run(*steps, before=before, after=after)


Work = Callable[[Transaction], Awaitable[T]]
Attempt = Callable[[Session, Work[T]], Awaitable[T]]


class Database:
    """A pool of `size` sessions, kept full from `open` to `close`."""

    _log = Logger()

    def __init__(self, *, reactor: ReactorBase, size: int, statements: tuple[Statement, ...]) -> None:
        self._reactor = reactor
        self._size = size
        self._statements = statements
        self._closed = False
        self._held = 0
        self.replaced = 0  # how many sessions were lost so far
        self._filling: Deferred[None] | None = None
        self._hosts: deque[str] = deque()  # the one that answered last comes first
        self._away = False
        self._idle: list[Session] = []
        self._busy: dict[Session, float] = {}  # and when their time is up
        self._cutting = LoopingCall(self._cut_overdue)
        self._cutting.clock = reactor
        self._cancelled: set[Session] = set()  # whose work's caller has given up
        self._doubted: set[Session] = set()
        self._waiting: dict[Deferred[Session], float] = {}  # in their order, and until when
        self._serving = False
        self._shrunk: Deferred[None] | None = None
        self._emptied: Deferred[None] | None = None

    async def transact(
        self, work: Callable[Concatenate[Transaction, P], Awaitable[T]], *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Run `work(transaction, …)` in one transaction, commit, and return what it returned.

        Any exception rolls back. A deadlock, or a connection lost before the commit was sent, is tried again, three
        times in all, so `work` must not keep state of its own. Raises Unavailable when no connection comes free
        within BORROW_SECONDS, DatabaseError when the database fails or the outcome is unknown.
        """
        return await self._run(_in_transaction, lambda transaction: work(transaction, *arguments, **options))

    async def autocommit(
        self, work: Callable[Concatenate[Transaction, P], Awaitable[T]], *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Like `transact`, for work that is a single statement: PostgreSQL commits it by itself, in one round trip."""
        return await self._run(_by_itself, lambda transaction: work(transaction, *arguments, **options))

    async def _run(self, attempt: Attempt[T], work: Work[T]) -> T:
        for left in reversed(range(ATTEMPTS)):
            session = None if self._waiting else self._take_idle()
            if session is None:
                session = await self._wait()
            try:
                return await self._use(session, attempt, work)
            except TransactionAborted as error:
                if not left:
                    raise
                self._log.info("a transaction is run again: {error}", error=error)
        raise AssertionError("unreachable")

    async def _use(self, session: Session, attempt: Attempt[T], work: Work[T]) -> T:
        self._busy[session] = deadline = self._reactor.seconds() + WORK_SECONDS
        try:
            result = await attempt(session, work)
        except Exception as error:
            if isinstance(error, Outdated):
                self._doubt_all_like(session)
            if session in self._cancelled:
                if not isinstance(error, Refused | TransactionAborted):
                    self._log.failure("database work failed after its client had gone")
                raise CancelledError from error
            if isinstance(error, TransactionAborted) and self._reactor.seconds() >= deadline:
                raise DatabaseError(f"the transaction took more than {WORK_SECONDS:g} s") from error
            raise
        else:
            if session in self._cancelled:
                raise CancelledError
            return result
        finally:
            self._cancelled.discard(session)
            del self._busy[session]
            self._give_back(session)

    def _cut_overdue(self) -> None:
        now = self._reactor.seconds()
        for waiter in [waiter for waiter, deadline in self._waiting.items() if now >= deadline]:
            self._decline(waiter)
        for session in [session for session, deadline in self._busy.items() if now >= deadline]:
            # a server that is frozen or out of reach would cost every connection to it as much
            self._doubt_all_like(session)
            session.close()

    # The pool.

    @property
    def used(self) -> int:
        """How many sessions are at work."""
        return len(self._busy)

    @property
    def idle(self) -> int:
        """How many sessions wait for work."""
        return len(self._idle)

    @property
    def waiting(self) -> int:
        """How much work waits for a session."""
        return len(self._waiting)

    def open(self, dsn: str) -> None:
        """Begin to connect; from now on the pool fills itself and replaces what it loses."""
        self._hosts.extend(each_host(dsn))
        self._filling = Deferred.fromCoroutine(self._keep_full())
        self._filling.addErrback(self._failed)
        self._cutting.start(CUT_SECONDS, now=False).addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        if not self._closed:
            self._log.failure("the connection pool no longer heals", failure)

    async def close(self, seconds: float) -> None:
        """Decline new work, give what runs up to `seconds` to end, then close every connection."""
        self._closed = True
        if self._filling is not None:
            self._filling.cancel()
        while self._waiting:
            self._decline(next(iter(self._waiting)))
        if self._busy:
            self._emptied = Deferred()
            with suppress(TimeoutError):
                await self._emptied.addTimeout(seconds, self._reactor)
        if self._cutting.running:
            self._cutting.stop()
        for session in [*self._idle, *self._busy]:
            session.close()

    def _wait(self) -> Deferred[Session]:
        if self._closed or len(self._waiting) >= BORROWERS:
            raise Unavailable
        waiter: Deferred[Session] = Deferred(self._waiting.pop)  # type: ignore[arg-type]
        self._waiting[waiter] = self._reactor.seconds() + BORROW_SECONDS
        return waiter

    def _decline(self, waiter: Deferred[Session]) -> None:
        del self._waiting[waiter]
        waiter.errback(Unavailable())

    def _take_idle(self) -> Session | None:
        while self._idle:
            session = self._idle.pop()  # the one used last: its caches are warm
            if session.still_usable():
                return session
            session.close()
        return None

    def _serve_waiting(self) -> None:
        # Work that never waits gives its session back inside of this loop, which then goes on; each time serving those
        # who wait from there would be a recursion as deep as the crowd.
        if self._serving:
            return
        self._serving = True
        try:
            while self._waiting and (session := self._take_idle()) is not None:
                waiter = next(iter(self._waiting))
                del self._waiting[waiter]
                Context().run(waiter.callback, session)  # whoever gave it back is another request
        finally:
            self._serving = False

    def _give_back(self, session: Session) -> None:
        if not session.usable or self._closed or session in self._doubted:
            session.close()
        else:
            self._idle.append(session)
            self._serve_waiting()  # at once: while the database works for them, this one's answer can be made
        if not self._busy and self._emptied is not None:
            emptied, self._emptied = self._emptied, None
            emptied.callback(None)

    def _lose(self, session: Session) -> None:
        self._held -= 1
        self.replaced += 1
        self._doubted.discard(session)
        if session in self._idle:
            self._idle.remove(session)
        if self._shrunk is not None:
            shrunk, self._shrunk = self._shrunk, None
            shrunk.callback(None)

    def _doubt_all_like(self, session: Session) -> None:
        """Replace all connections, each as soon as its work is done, and prefer the next host from now on."""
        if session in self._doubted:  # old news
            return
        self._hosts.rotate(-1)
        self._doubted |= self._busy.keys()
        for idle in self._idle[:]:
            idle.close()

    async def _keep_full(self) -> None:
        while not self._closed:
            if self._held == self._size:
                self._shrunk = Deferred()
                await self._shrunk
                continue
            hosts = tuple(self._hosts)
            position, session = await staggered_race(
                self._reactor, [partial(self._keep_trying, host) for host in hosts]
            )
            self._hosts.remove(hosts[position])
            self._hosts.appendleft(hosts[position])
            if self._away:
                self._log.info("connected to the database again")
            self._away = False
            self._held += 1
            session.when_lost(partial(self._lose, session))
            session.when_cancelled(partial(self._cancelled.add, session))
            self._give_back(session)

    async def _keep_trying(self, host: str) -> Session:
        while True:
            try:
                return await Session.open(self._reactor, host, statements=self._statements)
            except CancelledError:
                raise
            except ConnectionFailed as error:
                if not self._away:
                    self._log.warn("no connection to the database, still trying: {error}", error=error)
                self._away = True
            except Exception:  # a pool that gave up here would never heal
                self._log.failure("no connection to the database, for a reason that nobody foresaw")
            await deferLater(self._reactor, RECONNECT_SECONDS)


async def _in_transaction(session: Session, work: Work[T]) -> T:
    transaction = Transaction(session, opening="BEGIN; ")
    try:
        result = await work(transaction)
        _check_can_commit(session, transaction)
    except BaseException:
        if session.can_roll_back:
            with suppress(DatabaseError):
                await session.execute("ROLLBACK")
        raise
    if transaction.uncommitted:
        await _by_itself(session, lambda _: session.execute("COMMIT"))
    return result


def _check_can_commit(session: Session, transaction: Transaction) -> None:
    if transaction.uncommitted and not session.can_commit:
        raise DatabaseError("work went on after a statement had failed")


async def _by_itself(session: Session, work: Work[T]) -> T:
    try:
        return await work(Transaction(session))
    except ConnectionLost as error:
        raise _unknown(error) from error


def _unknown(error: ConnectionLost) -> DatabaseError:
    return DatabaseError(f"outcome unknown, {error}")
