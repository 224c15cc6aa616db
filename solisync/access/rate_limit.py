"""Rate limits that hold across processes and nodes, because PostgreSQL counts (docs/security.md "Bounds").

The algorithm is a sliding log: a request is admitted if fewer than `most` were in the `seconds` before it. After a
refusal that can't change until the oldest admitted request leaves the window, so each process remembers how long that
takes, and a flood of refused requests costs no statements.
"""

from dataclasses import dataclass
from math import ceil

from twisted.internet.base import ReactorBase

from ..errors import TooMany
from ..postgres.database import Database
from ..storage import rate_limits

REMEMBERED = 10_000  # refused clients kept in memory; forgetting one costs a statement


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` requests of one address or player in any `seconds`, in all routes with this limit together."""

    name: str
    most: int
    seconds: int


AUTH = Limit("auth", most=10, seconds=60)  # unless SOLISYNC_AUTH_LIMIT says otherwise
ANALYTICS = Limit("analytics", most=5, seconds=60)
PASSWORD = Limit("password", most=5, seconds=60)
EXPORT = Limit("export", most=2, seconds=60)
OPT_IN = Limit("opt_in", most=10, seconds=60)
LIMITS = (AUTH, ANALYTICS, PASSWORD, EXPORT, OPT_IN)


class RateLimiter:
    """Counts requests and raises TooMany for those above a limit."""

    def __init__(self, *, database: Database, reactor: ReactorBase) -> None:
        self._database = database
        self._reactor = reactor
        self._refused_until: dict[str, float] = {}

    async def admit(self, limit: Limit, client: str) -> None:
        """Count a request of `client`, a bucket of an origin; raises TooMany without counting it."""
        bucket = f"{limit.name}:{client}"
        now = self._reactor.seconds()
        until = self._refused_until.get(bucket)
        if until is not None:
            if now < until:
                raise TooMany(ceil(until - now))
            del self._refused_until[bucket]
        wait = await self._database.autocommit(rate_limits.hit, bucket, most=limit.most, seconds=limit.seconds)
        if wait is not None:
            if len(self._refused_until) >= REMEMBERED:
                del self._refused_until[next(iter(self._refused_until))]
            self._refused_until[bucket] = self._reactor.seconds() + wait
            raise TooMany(ceil(wait))
