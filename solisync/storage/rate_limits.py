"""The sliding log behind the rate limits: for each bucket the times of its latest admitted requests.

A bucket holds at most as many times as its limit allows. A request is admitted when there is room, or when the oldest
time has left the window, and then replaces that time; a refused request leaves the log as it was. All of it is one
statement under the row's lock and on the database's clock, so any number of nodes agree.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ..postgres.statement import Statement
from ..postgres.transaction import Statements


def counting(bucket: str, most: str, seconds: str) -> str:
    """The SQL that counts one request, with these parameters; its only row is what `hit` returns."""
    # clock_timestamp() and not now(): a statement that waited for the row must not log the time it began to wait.
    # A time in the future was logged before the clock was set back; it must not refuse requests until then.
    return f"""
    INSERT INTO rate_limits AS r (bucket, hits, admitted)
    VALUES ({bucket}::text, ARRAY[clock_timestamp()], true)
    ON CONFLICT (bucket) DO UPDATE SET (hits, admitted) = (
        SELECT CASE WHEN fits THEN r.hits[cardinality(r.hits) - {most}::int + 2:] || now ELSE r.hits END, fits
        FROM clock_timestamp() AS now,
            LATERAL (SELECT r.hits[cardinality(r.hits) - {most}::int + 1] AS oldest) AS log,
            LATERAL (
                SELECT coalesce(oldest <= now - make_interval(secs => {seconds}::int) OR oldest > now, true) AS fits
            ) AS verdict
    )
    RETURNING CASE WHEN NOT admitted THEN
        extract(epoch FROM hits[cardinality(hits) - {most}::int + 1] - clock_timestamp())::float8 + {seconds}::int
    END
    """  # noqa: S608


HIT = Statement("rate_limit_hit", counting("$1", "$2", "$3"))

PRUNE = Statement(
    "prune_rate_limits",
    """
    DELETE FROM rate_limits WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM rate_limits
        WHERE hits[cardinality(hits)] < clock_timestamp() - make_interval(
            secs => coalesce(($2::int[])[array_position($1::text[], split_part(bucket, ':', 1))], $3::int)
        )
        LIMIT $4::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """,
)


class Hit(NamedTuple):
    """A request to count against `bucket`, which admits `most` of them in any `seconds`."""

    bucket: str
    most: int
    seconds: int


async def hit(statements: Statements, request: Hit) -> float | None:
    """Count one request: None when it is admitted, else after how many seconds there is room."""
    (row,) = await statements.run(HIT, *request)
    wait: float | None = row[0]
    return wait


async def prune(statements: Statements, *, windows: Mapping[str, int], most: int) -> int:
    """Delete up to `most` buckets that admitted nothing within the window of their limit; returns how many.

    `windows` has the seconds of each limit by its name. A limit of another version counts as the longest of them.
    """
    return len(await statements.run(PRUNE, [*windows], [*windows.values()], max(windows.values()), most))
