"""Analytics: each event once, and the names that events refer to (contract §10).

A name has one row, which says on which day it was last seen, so that a name ends with the last event that refers to it
without anybody counting those. Erasing a player deletes that row; it is part of deleting the account.
"""

from collections.abc import Sequence
from datetime import datetime

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction
from ..rules.analytics import Event

# Any number of these with the same events may run at once. They first take the name, then insert in the order of the
# ids, so none waits for one that waits for it. The name is written only on its first day, once on each later one, and
# never for events that are there already: a batch sent again after a deletion doesn't bring the name back.
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
              SELECT FROM sent WHERE NOT EXISTS (SELECT FROM analytics_events WHERE analytics_events.id = sent.id)
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

PRUNE = Statement(
    "prune_analytics",
    """
    DELETE FROM analytics_events WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM analytics_events WHERE received_at < $1::timestamptz
        ORDER BY received_at LIMIT $2::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """,
)

# Before the day of $1, so that every event which refers to the name was received before $1.
PRUNE_NAMES = Statement(
    "prune_analytics_names",
    """
    DELETE FROM analytics_names WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM analytics_names WHERE seen_on < ($1::timestamptz AT TIME ZONE 'UTC')::date
        ORDER BY seen_on LIMIT $2::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """,
)


async def store(
    transaction: Transaction, *, session_id: str, name: str | None, events: Sequence[Event], now: datetime
) -> int:
    """Store events with distinct ids, but for those that are there already; returns how many were new."""
    rows = await transaction.run(
        STORE,
        session_id,
        name,
        now,
        [event.id for event in events],
        [event.event_type for event in events],
        [bytes(event.payload).decode() for event in events],
        [event.client_time.isoformat() for event in events],
    )
    return len(rows)


async def prune(transaction: Transaction, before: datetime, *, most: int) -> int:
    """Delete up to `most` events that were received before this time; returns how many."""
    return len(await transaction.run(PRUNE, before, most))


async def prune_names(transaction: Transaction, before: datetime, *, most: int) -> int:
    """Delete up to `most` names to which only events from before this time referred; returns how many."""
    return len(await transaction.run(PRUNE_NAMES, before, most))
