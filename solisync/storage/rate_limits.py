"""The sliding log behind the rate limits: for each bucket the times of its latest admitted requests.

A bucket holds at most as many times as its limit allows. A request is admitted when there is room, or when the
oldest time has left the window, which it then replaces; a refused one leaves the log as it was. All of it is one
statement under the row's lock and on the database's clock, so any number of nodes agree.
"""

from ..database import Cursor
from ..session import Statement
from .rows import one

# clock_timestamp() and not now(): a statement that waited for the row must not log the time it began to wait.
HIT = Statement(
    "rate_limit_hit",
    """
    INSERT INTO rate_limits AS r (bucket, hits, admitted)
    VALUES ($1::text, ARRAY[clock_timestamp()], true)
    ON CONFLICT (bucket) DO UPDATE SET (hits, admitted) = (
        SELECT CASE WHEN fits THEN r.hits[cardinality(r.hits) - $2::int + 2:] || clock_timestamp() ELSE r.hits END, fits
        FROM (SELECT cardinality(r.hits) < $2::int
                  OR r.hits[1] <= clock_timestamp() - make_interval(secs => $3::int) AS fits) AS verdict
    )
    RETURNING CASE WHEN admitted THEN 0 ELSE greatest(1,
        ceil(extract(epoch FROM hits[1] - clock_timestamp()) + $3::int)) END::int
    """,
)

PRUNE = Statement(
    "prune_rate_limits",
    """
    DELETE FROM rate_limits WHERE bucket IN (
        SELECT bucket FROM rate_limits
        WHERE hits[cardinality(hits)] < clock_timestamp() - make_interval(secs => $1::int)
        LIMIT $2::int FOR UPDATE SKIP LOCKED
    ) RETURNING true
    """,
)


async def hit(cursor: Cursor, bucket: str, *, most: int, seconds: int) -> int:
    """Count one request against `bucket`: 0 when it is admitted, else in how many whole seconds there is room."""
    return one(int, await cursor.run(HIT, bucket, most, seconds))


async def prune(cursor: Cursor, *, idle_seconds: int, most: int) -> int:
    """Delete up to `most` buckets that admitted nothing for `idle_seconds`; returns how many."""
    return len(await cursor.run(PRUNE, idle_seconds, most))
