"""The sliding log behind the rate limits: for each bucket, the times of its latest admitted requests.

A bucket holds at most as many times as its limit allows. A request is admitted if there is room, or if the oldest time
has left the window; it then replaces that time. A refused request leaves the log unchanged. One statement does all of
this under the row's lock and on the database's clock, so all nodes agree.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ..postgres.declared import execute
from ..postgres.statement import Statement
from ..postgres.transaction import Statements


def counting(bucket: str, most: str, seconds: str) -> str:
    """SQL that counts one request, with these parameters; its only row is what `hit` returns."""
    # clock_timestamp() instead of now(), because a statement that waited for the row must not log when the wait began.
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
        WHERE (hits[cardinality(hits)] < clock_timestamp() - make_interval(
            secs => coalesce(($2::int[])[array_position($1::text[], split_part(bucket, ':', 1))], $3::int)
        )) IS NOT FALSE
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
    """Count one request; return None if it is admitted, or else the seconds until there is room."""
    (row,) = await statements.run((HIT, *request))
    wait: float | None = row[0]
    return wait


@execute("UPDATE rate_limits SET hits = hits[:cardinality(hits) - 1] WHERE bucket = $1::text")
async def give_back(bucket: str) -> None:
    """Count one request less."""


async def prune(statements: Statements, *, windows: Mapping[str, int], most: int) -> int:
    """Delete up to `most` buckets that admitted nothing within the window of their limit; return their number.

    `windows` maps the name of each limit to its seconds. A limit of another version counts as the longest of them.
    """
    return len(await statements.run((PRUNE, [*windows], [*windows.values()], max(windows.values()), most)))
