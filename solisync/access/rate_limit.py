"""Rate limits that hold across processes and nodes, because PostgreSQL counts (docs/security.md "Bounds").

The algorithm is a sliding log: a request is admitted if fewer than `most` were in the `seconds` before it. After a
refusal that can't change until the oldest admitted request leaves the window, so each process remembers how long that
takes, and a flood of refused requests costs no statements.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import NoReturn

from twisted.internet.base import ReactorBase

from ..errors import TooMany
from ..postgres.database import Database
from ..storage import rate_limits
from ..storage.rate_limits import Hit

REMEMBERED = 10_000  # refused clients kept in memory; forgetting one costs a statement


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` requests of one address or player in any `seconds`, in all routes with this limit together."""

    name: str
    most: int
    seconds: int

    def bucket(self, client: str) -> str:
        """Where the requests of an origin or a player are counted."""
        return f"{self.name}:{client}"


AUTH = Limit("auth", most=10, seconds=60)  # unless SOLISYNC_AUTH_LIMIT says otherwise
ANALYTICS = Limit("analytics", most=5, seconds=60)
PASSWORD = Limit("password", most=5, seconds=60)
EXPORT = Limit("export", most=2, seconds=60)
OPT_IN = Limit("opt_in", most=10, seconds=60)
LIMITS_OF_PLAYERS = (PASSWORD, EXPORT, OPT_IN)
LIMITS = (AUTH, ANALYTICS, *LIMITS_OF_PLAYERS)


def buckets_of(player: str) -> list[str]:
    """The buckets of one player."""
    return [limit.bucket(player) for limit in LIMITS_OF_PLAYERS]


class RateLimiter:
    """Counts requests and raises TooMany for those above a limit, having called `on_refusal` with the limit's name."""

    def __init__(
        self, *, database: Database, reactor: ReactorBase, on_refusal: Callable[[str], None] = lambda name: None
    ) -> None:
        self._database = database
        self._reactor = reactor
        self._on_refusal = on_refusal
        self._refused_until: dict[str, float] = {}

    async def admit(self, limit: Limit, client: str) -> None:
        """Count a request of `client`, a bucket of an origin; raises TooMany without counting it."""
        await self.expect(limit, client).count()

    def expect(self, limit: Limit, client: str) -> "Admission":
        """A request of `client` that has yet to be counted; raises TooMany if it is known to be refused."""
        hit = Hit(limit.bucket(client), limit.most, limit.seconds)
        until = self._refused_until.get(hit.bucket)
        if until is not None:
            now = self._reactor.seconds()
            if now < until:
                self._on_refusal(limit.name)
                raise TooMany(ceil(until - now))
            del self._refused_until[hit.bucket]
        return Admission(self, limit, hit)

    async def run(self, hit: Hit) -> float | None:
        """Count a request by a statement of its own; returns what `Admission.settle` takes."""
        return await self._database.autocommit(rate_limits.hit, hit)

    def refuse(self, limit: Limit, bucket: str, wait: float) -> NoReturn:
        """Raise TooMany, and remember to refuse requests against `bucket` for as long as they have to wait."""
        if len(self._refused_until) >= REMEMBERED:
            del self._refused_until[next(iter(self._refused_until))]
        self._refused_until[bucket] = self._reactor.seconds() + wait
        self._on_refusal(limit.name)
        raise TooMany(ceil(wait))


class Admission:
    """A request that is counted once: by itself, or by a statement that does more. `pending` until one has begun to."""

    def __init__(self, limiter: RateLimiter, limit: Limit, hit: Hit) -> None:
        self.pending = True
        self._limiter = limiter
        self._limit = limit
        self._hit = hit

    async def count(self) -> None:
        """Count the request; raises TooMany without counting it."""
        self.settle(await self._limiter.run(self.begin()))

    def begin(self) -> Hit:
        """What a statement has to count, which is about to run."""
        self.pending = False
        return self._hit

    def settle(self, wait: float | None) -> None:
        """Raise TooMany unless the request was admitted; `wait` is what counting has returned."""
        if wait is not None:
            self._limiter.refuse(self._limit, self._hit.bucket, wait)
