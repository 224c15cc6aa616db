"""Analytics: events, each stored once, and the names that they refer to (docs/protocol.md "Analytics").

Each name has one row, with the day on which it was last seen. So the name can be pruned after the last event that
refers to it, without counting events. Deleting an account deletes the row, which makes the player's events anonymous.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..postgres.declared import count
from ..postgres.statement import Query, Statement
from ..postgres.transaction import Statements
from ..rules.analytics import AnalyticsEvent
from . import paging
from .retention import NOW


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as commands show it: `payload` is JSON as sent; `name` is None without one, or once it was erased."""

    id: str
    received_at: datetime
    client_time: datetime
    session_id: str
    name: str | None
    event_type: str
    payload: str


# Any number of these statements with the same events may run at the same time. Each first takes the name, then inserts
# in the order of the ids, so they can't deadlock. The name's row is written on its first day and once on each later
# day. Events that were stored before don't write it: a batch that is sent again after a deletion doesn't restore the
# name. The ORDER BY makes the planner use the index even before the table was first analyzed: it would join a table
# that it believes to be small, in a plan that it keeps.
STORE = Statement(
    "store_analytics",
    """
    WITH sent AS (
        SELECT id, event_type, payload, client_time
        FROM unnest($4::text[]::uuid[], $5::text[], $6::text[], $7::text[]::timestamptz[])
            AS event (id, event_type, payload, client_time)
    ), today AS (
        SELECT ($3::timestamptz AT TIME ZONE 'UTC')::date AS day
    ), known AS (
        SELECT id FROM analytics_names, today WHERE name = $2::text AND seen_on >= day
    ), seen AS (
        INSERT INTO analytics_names AS old (name, seen_on)
        SELECT $2::text, day FROM today
        WHERE $2::text IS NOT NULL
          AND NOT EXISTS (SELECT FROM known)
          AND EXISTS (
              SELECT FROM sent WHERE id IS DISTINCT FROM (
                  SELECT stored.id FROM analytics_events AS stored WHERE stored.id >= sent.id
                  ORDER BY stored.id LIMIT 1
              )
          )
        ON CONFLICT (name) DO UPDATE SET seen_on = greatest(old.seen_on, excluded.seen_on)
        RETURNING id
    )
    INSERT INTO analytics_events (id, session_id, name_id, event_type, payload, client_time, received_at)
    SELECT id, $1::text, (SELECT id FROM known UNION ALL SELECT id FROM seen), event_type, payload, client_time,
        $3::timestamptz
    FROM sent ORDER BY sent.id
    ON CONFLICT (id) DO NOTHING
    RETURNING true
    """,
)

LIST = Query(
    "admin_events",
    """
    SELECT event.id, received_at, client_time, session_id, name, event_type, payload
    FROM analytics_events AS event LEFT JOIN analytics_names ON analytics_names.id = name_id
    WHERE (received_at, event.id) > ($1::timestamptz, $2::uuid) AND received_at < $3::timestamptz
    ORDER BY received_at, event.id LIMIT $4::int
    """,
    prepared=False,
    row=StoredEvent,
)


async def store(
    statements: Statements, *, session_id: str, name: str | None, events: Sequence[AnalyticsEvent], now: datetime
) -> int:
    """Store events with distinct ids, except those that are stored already; return the number of new ones."""
    rows = await statements.run(
        (
            STORE,
            session_id,
            name,
            now,
            [event.id for event in events],
            [event.event_type for event in events],
            [bytes(event.payload).decode() for event in events],
            [event.client_time.isoformat() for event in events],
        ),
    )
    return len(rows)


@count(f"""
    DELETE FROM analytics_events WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM analytics_events WHERE received_at < {NOW} - make_interval(days => $1::int)
        ORDER BY received_at LIMIT $2::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """)  # noqa: S608
async def prune(*, days: int, most: int) -> int:
    """Delete up to `most` events that were received more than `days` ago; return their number."""


# Compares whole days with `<`, so that every event which refers to the name was received before that time.
@count(f"""
    DELETE FROM analytics_names WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM analytics_names WHERE seen_on < ({NOW} AT TIME ZONE 'UTC')::date - $1::int
        ORDER BY seen_on LIMIT $2::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """)  # noqa: S608
async def prune_names(*, days: int, most: int) -> int:
    """Delete up to `most` names that no event of the last `days` refers to; return their number."""


def received(
    statements: Statements, *, since: datetime, until: datetime, size: int = paging.PAGE
) -> AsyncIterator[list[StoredEvent]]:
    """The events received from `since` on and before `until`, oldest first, in pages of `size`."""

    async def read(after: StoredEvent | None) -> list[StoredEvent]:
        start = paging.position(after, since)
        return await statements.many(LIST, *start, until, size)

    return paging.pages(read, size)
