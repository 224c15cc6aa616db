"""Rate limits across processes and nodes, counted in PostgreSQL (docs/security.md "Bounds").

The algorithm is a sliding log: a request is admitted if fewer than `most` were admitted in the `seconds` before it.
After a refusal, no request can be admitted until the oldest one leaves the window. Each process remembers that time, so
that a flood of refused requests costs no statements. Streams are counted in the memory of each process.
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

STREAMS, STREAM_SECONDS = 60, 60.0  # the openings of a player, in a number of seconds
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
ADMIN = Limit("admin", most=600, seconds=60)  # an admin's reads, and signing out
ADMIN_ACTS = Limit("admin_acts", most=120, seconds=600)
ADMIN_GRAVE = Limit("admin_grave", most=10, seconds=600)  # acts that can't be undone, or that give access to an account
LIMITS_OF_PLAYERS = (PASSWORD, EXPORT, OPT_IN, JOIN)
LIMITS = (AUTH, GUEST, ANALYTICS, *LIMITS_OF_PLAYERS, ADMIN, ADMIN_ACTS, ADMIN_GRAVE)


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


class StreamRateLimit:
    """Counts the streams that each player opens, and allows STREAMS in any STREAM_SECONDS."""

    name = "streams"

    def __init__(self, *, reactor: ReactorBase, on_refusal: Callable[[], None]) -> None:
        self._reactor = reactor
        self._on_refusal = on_refusal
        self._times: dict[str, deque[float]] = {}  # by player, in the order of their latest openings

    def count(self, player: str) -> None:
        """Count an opening, or raise TooMany without counting it."""
        now = self._reactor.seconds()
        self._forget_before(now - STREAM_SECONDS)
        times = self._times.pop(player, None) or deque()
        self._times[player] = times
        while times and times[0] <= now - STREAM_SECONDS:
            times.popleft()
        if len(times) >= STREAMS:
            self._on_refusal()
            raise TooMany(ceil(times[0] + STREAM_SECONDS - now))
        times.append(now)

    def _forget_before(self, time: float) -> None:
        """Forget players who have opened no stream since then, a few at a time."""
        for _ in range(2):
            player = next(iter(self._times), None)
            if player is None or (self._times[player] and self._times[player][-1] > time):
                return
            del self._times[player]
