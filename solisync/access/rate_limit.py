"""Rate limits that hold across processes and nodes, because PostgreSQL counts (contract §3, §10).

A sliding log refuses nobody early and admits nobody late: after a refusal nothing can change until the oldest
admitted request leaves the window. So a process that was told "in n seconds" remembers that, and a flood of refused
requests costs no statement.
"""

from dataclasses import dataclass
from math import ceil

from twisted.internet.base import ReactorBase

from ..errors import TooMany
from ..postgres.database import Database
from ..storage import rate_limits

REMEMBERED = 10_000  # refused clients kept in memory; forgetting one costs a statement, nothing else


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` requests of one client in any `seconds`, shared by all routes that name it."""

    name: str
    most: int
    seconds: int


AUTH = Limit("auth", most=10, seconds=60)
ANALYTICS = Limit("analytics", most=5, seconds=60)
LIMITS = (AUTH, ANALYTICS)


class RateLimiter:
    """Admits requests or raises TooMany."""

    def __init__(self, *, database: Database, reactor: ReactorBase) -> None:
        self._database = database
        self._reactor = reactor
        self._refused_until: dict[str, float] = {}

    async def admit(self, limit: Limit, client: str) -> None:
        """Count a request of `client`; raises TooMany, and then it does not count."""
        bucket = f"{limit.name}:{client}"
        now = self._reactor.seconds()
        until = self._refused_until.get(bucket)
        if until is not None:
            if now < until <= now + limit.seconds:  # else it is over, or the clock was set back
                raise TooMany(ceil(until - now))
            del self._refused_until[bucket]
        wait = await self._database.autocommit(rate_limits.hit, bucket, most=limit.most, seconds=limit.seconds)
        if wait is not None:
            if len(self._refused_until) >= REMEMBERED:
                del self._refused_until[next(iter(self._refused_until))]
            self._refused_until[bucket] = self._reactor.seconds() + wait
            raise TooMany(ceil(wait))
