"""The numbers of each day, which housekeeping counts: docs/console.md "Numbers over time"."""

from dataclasses import dataclass, fields
from datetime import date
from typing import Annotated

from msgspec import Meta

from ...postgres.declared import execute, many, one
from ...postgres.statement import Query, Statement
from ...postgres.transaction import Transaction
from ...rules.administration import KEPT_DAYS
from ..retention import NOW


@dataclass(frozen=True, slots=True)
class DayNumbers:
    """The numbers of a day in UTC; null: not counted. Those of today are up to an hour old."""

    day: date
    registrations: Annotated[int | None, Meta(description="new players, without guests")]
    guests: Annotated[int | None, Meta(description="new guests")]
    active: Annotated[int | None, Meta(description="players and guests who used a session, pushed or uploaded")]
    replays: Annotated[int | None, Meta(description="uploads")]
    verified: Annotated[int | None, Meta(description="replays whose last check was on this day, and verified them")]
    refuted: Annotated[int | None, Meta(description="replays whose last check was on this day, and refuted them")]
    suspensions: int | None
    deletions: Annotated[int | None, Meta(description="accounts deleted by players and operators, without guests")]


JOB = "daily numbers"  # of housekeeping
NAMES = tuple(field.name for field in fields(DayNumbers)[1:])


def _days(table: str, moment: str, *, condition: str = "true", key: str = "") -> str:
    """SQL for the days of the rows of a table, within the span of the days to count."""
    return f"""
        SELECT {key} ({moment} AT TIME ZONE 'UTC')::date AS day FROM {table}
        WHERE {moment} >= (SELECT begins FROM span) AND {moment} < (SELECT ends FROM span) AND {condition}
    """  # noqa: S608


# For each number, the days of the rows that count. UNION counts each player once a day.
_SOURCES = {
    "registrations": _days("users", "created_at", condition="guest IS NOT TRUE"),
    "guests": _days("users", "created_at", condition="guest"),
    "active": " UNION ".join(
        _days(table, moment, key="user_id,")
        for table, moment in (("refresh_tokens", "used_at"), ("known_states", "pushed_at"), ("replays", "received_at"))
    ),
    "replays": _days("replays", "received_at"),
    "verified": _days("verdicts", "checked_at", condition="status = 'verified'"),
    "refuted": _days("verdicts", "checked_at", condition="status = 'refuted'"),
    "suspensions": _days("admin_acts", "at", condition="act = 'suspend'"),
    "deletions": _days("account_deletions", "deleted_at"),
}

# By the retention clock, a clock that is wrong for a minute begins no day, and makes no count final.
_TODAY = f"({NOW} AT TIME ZONE 'UTC')::date"

# From then on a day's numbers are final: at midnight uploads may still be on their way, and clocks of nodes differ.
_FINAL = "(known.day + 1)::timestamp AT TIME ZONE 'UTC' + interval '5 minutes'"

_FOUND = " UNION ALL ".join(f"SELECT '{name}' AS name, day FROM ({days}) AS days" for name, days in _SOURCES.items())  # noqa: S608

# Counts the days without final numbers. A node of 1.1 stores the last of NAMES last. A number never falls. Of sessions
# before the first count, nothing is known.
COUNT = Statement(
    "count_days",
    f"""
    WITH due AS MATERIALIZED (
        SELECT series.day::date
        FROM generate_series(({_TODAY} - {KEPT_DAYS - 1})::timestamp, {_TODAY}, interval '1 day') AS series (day)
        WHERE NOT EXISTS (
            SELECT FROM daily_numbers AS known
            WHERE known.day = series.day::date AND known.name = '{NAMES[-1]}' AND counted_at >= {_FINAL}
        )
    ), span AS MATERIALIZED (
        SELECT min(day)::timestamp AT TIME ZONE 'UTC' AS begins, (max(day) + 1)::timestamp AT TIME ZONE 'UTC' AS ends
        FROM due
    ), counted AS (SELECT name, day, count(*) AS count FROM ({_FOUND}) AS found GROUP BY name, day)
    INSERT INTO daily_numbers AS known (day, name, count, counted_at)
    SELECT day, name, coalesce(count, 0), {NOW}
    FROM due CROSS JOIN unnest(ARRAY{list(NAMES)}) AS names (name) LEFT JOIN counted USING (name, day)
    WHERE name <> 'active' OR day >= coalesce((SELECT min(day) FROM daily_numbers WHERE name = 'active'), {_TODAY})
    ON CONFLICT (day, name) DO UPDATE SET
        count = greatest(known.count, excluded.count), counted_at = excluded.counted_at
        WHERE known.counted_at < {_FINAL}
    """,  # noqa: S608
    prepared=False,
)

# The connection lifts the role's limit itself, but not behind a pooler.
LIFT_LIMIT = Statement("lift_statement_timeout", "SELECT set_config('statement_timeout', '0', true)", prepared=False)

# One node counts at a time.
TAKE_TURN = Query(
    "take_turn_in_counting", "SELECT pg_try_advisory_xact_lock(6129834572114804)", prepared=False, row=bool
)


async def count(transaction: Transaction) -> None:
    """Count the numbers of all days to count, unless another node is counting."""
    if await transaction.one(TAKE_TURN, first=(LIFT_LIMIT,)):
        await transaction.run((COUNT,))


@one(
    f"""
    WITH deletions AS (
        DELETE FROM account_deletions WHERE deleted_at < ({_TODAY} - {KEPT_DAYS - 1})::timestamp AT TIME ZONE 'UTC'
        RETURNING true
    ), numbers AS (
        DELETE FROM daily_numbers WHERE day < {_TODAY} - {KEPT_DAYS - 1} RETURNING true
    )
    SELECT (SELECT count(*) FROM deletions) + (SELECT count(*) FROM numbers)
    """,  # noqa: S608
    prepared=False,
    row=int,
)
async def prune() -> int:
    """Delete the numbers of days before the last KEPT_DAYS, and deletions of accounts; return their number."""


@many(
    f"""
    SELECT series.day::date, {", ".join(f"max(count) FILTER (WHERE name = '{name}') AS {name}" for name in NAMES)}
    FROM generate_series(
        date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC') - ($1::int - 1) * interval '1 day',
        clock_timestamp() AT TIME ZONE 'UTC', interval '1 day'
    ) AS series (day)
    LEFT JOIN daily_numbers ON daily_numbers.day = series.day::date
    GROUP BY series.day ORDER BY series.day
    """,  # noqa: S608
    prepared=False,
    row=DayNumbers,
)
async def of_days(days: int) -> list[DayNumbers]:
    """The numbers of the last days, today included, oldest first."""


@execute(
    f"""
    WITH due AS (UPDATE housekeeping SET ran_at = NULL WHERE job = '{JOB}')
    UPDATE daily_numbers SET counted_at = '-infinity' WHERE day >= $1::date
    """,  # noqa: S608
    prepared=False,
)
async def count_again(since: date) -> None:
    """Let the next round count these days again, because a command has added to them; their numbers never fall."""
