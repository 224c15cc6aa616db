"""Rate limits across processes and nodes, counted in PostgreSQL (docs/security.md "Bounds").

The algorithm is a sliding log: a request is admitted if fewer than `most` were admitted in the `seconds` before it.
After a refusal, no request can be admitted until the oldest one leaves the window. Each process remembers that time, so
that a flood of refused requests costs no statements. LocalRateLimit counts in the memory of each process.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from twisted.internet.base import ReactorBase

from ..errors import TooMany
from ..postgres.database import Database
from ..storage import rate_limits
from ..storage.rate_limits import Hit

REMEMBERED = 10_000  # the number of refused clients in memory; forgetting one costs a statement


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit: at most `most` requests of an address or player in any `seconds`, over all routes with this limit."""

    name: str
    most: int
    seconds: int

    def bucket(self, client: str) -> str:
        """The name under which the requests of a client are counted."""
        return f"{self.name}:{client}"

    def hit(self, client: str) -> Hit:
        """The parameters of the statement that counts a request of `client`."""
        return Hit(self.bucket(client), self.most, self.seconds)


AUTH = Limit("auth", most=10, seconds=60)  # the default of SOLISYNC_AUTH_LIMIT
GUEST = Limit("guest", most=60, seconds=3600)  # the default of SOLISYNC_GUEST_LIMIT
RETURNED = Limit("returned", most=10, seconds=60)  # requests of an address that count no longer
ANALYTICS = Limit("analytics", most=5, seconds=60)
PASSWORD = Limit("password", most=5, seconds=60)
EXPORT = Limit("export", most=2, seconds=60)
OPT_IN = Limit("opt_in", most=10, seconds=60)
JOIN = Limit("join", most=10, seconds=60)
GAMES = Limit("games", most=60, seconds=60)
ADMIN = Limit("admin", most=600, seconds=60)  # an admin's reads, and signing out
ADMIN_ACTS = Limit("admin_acts", most=120, seconds=600)
ADMIN_GRAVE = Limit("admin_grave", most=10, seconds=600)  # acts that can't be undone, or that give access to an account
STREAMS = Limit("streams", most=60, seconds=60)  # a player's openings, in each process
WRONG_CODES = Limit("admin_codes", most=10, seconds=60)  # an address's sign-ins to the console, in each process
LIMITS_OF_PLAYERS = (PASSWORD, EXPORT, OPT_IN, JOIN, GAMES)
LIMITS = (AUTH, GUEST, ANALYTICS, *LIMITS_OF_PLAYERS, ADMIN, ADMIN_ACTS, ADMIN_GRAVE)
LOCAL_LIMITS = (STREAMS, WRONG_CODES)


def buckets_of(player: str) -> list[str]:
    """The names of all buckets of a player."""
    return [limit.bucket(player) for limit in LIMITS_OF_PLAYERS]


class RateLimiter:
    """Counts requests; above a limit, it calls `on_refusal` with the limit's name and raises TooMany."""

    def __init__(
        self, *, database: Database, reactor: ReactorBase, on_refusal: Callable[[str], None] = lambda name: None
    ) -> None:
        self._database = database
        self._reactor = reactor
        self._on_refusal = on_refusal
        self._refused_until: dict[str, float] = {}

    async def admit(self, limit: Limit, client: str) -> None:
        """Count a request of `client`, or raise TooMany without counting it."""
        self.check(limit, client)
        self.settle(limit, client, await self._database.run(rate_limits.hit, limit.hit(client)))

    async def give_back(self, limit: Limit, client: str) -> None:
        """Count one request of `client` less, unless RETURNED is used up."""
        if await self._database.run(rate_limits.hit, RETURNED.hit(client)) is None:
            await self._database.run(rate_limits.give_back, limit.bucket(client))

    def check(self, limit: Limit, client: str) -> None:
        """Raise TooMany if this process remembers that `client` must wait."""
        bucket = limit.bucket(client)
        until = self._refused_until.get(bucket)
        if until is not None:
            now = self._reactor.seconds()
            if now < until:
                self._on_refusal(limit.name)
                raise TooMany(ceil(until - now))
            del self._refused_until[bucket]

    def settle(self, limit: Limit, client: str, wait: float | None) -> None:
        """Raise TooMany and remember the refusal, unless `wait`, the result of counting the request, is None."""
        if wait is None:
            return
        if len(self._refused_until) >= REMEMBERED:
            del self._refused_until[next(iter(self._refused_until))]
        self._refused_until[limit.bucket(client)] = self._reactor.seconds() + wait
        self._on_refusal(limit.name)
        raise TooMany(ceil(wait))


class LocalRateLimit:
    """Counts requests in the memory of this process; above the limit, it calls `on_refusal` and raises TooMany."""

    def __init__(self, limit: Limit, *, reactor: ReactorBase, on_refusal: Callable[[str], None]) -> None:
        self._limit = limit
        self._reactor = reactor
        self._on_refusal = on_refusal
        self._times: dict[str, deque[float]] = {}  # by client, in the order of their latest requests

    def count(self, client: str) -> None:
        """Count a request of `client`, or raise TooMany without counting it."""
        now = self._reactor.seconds()
        begin = now - self._limit.seconds
        self._forget_before(begin)
        times = self._times.pop(client, None) or deque()
        self._times[client] = times
        while times and times[0] <= begin:
            times.popleft()
        if len(times) >= self._limit.most:
            self._on_refusal(self._limit.name)
            raise TooMany(ceil(times[0] - begin))
        times.append(now)

    def _forget_before(self, time: float) -> None:
        """Forget clients without a request since then, a few at a time."""
        for _ in range(2):
            client = next(iter(self._times), None)
            if client is None or (self._times[client] and self._times[client][-1] > time):
                return
            del self._times[client]
