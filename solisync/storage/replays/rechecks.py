"""Adding replays to the queue again: old ones, those that an older engine checked, and those that an operator names.

A trigger adds new uploads. docs/verification.md "How replays get checked" describes the order.
"""

from collections.abc import Sequence

from ...klondike import PREFERRED
from ...postgres.declared import execute, one
from ...postgres.statement import Query
from ...postgres.transaction import Statements

ENQUEUE = Query(
    "admin_check_replays",
    """
    WITH found AS (
        SELECT id, user_id, received_at, verdicts.replay_id IS NULL AS pending
        FROM replays LEFT JOIN verdicts ON verdicts.replay_id = id WHERE id = ANY ($1::text[]::uuid[])
    ), added AS (
        INSERT INTO replay_checks (replay_id, user_id, received_at, ahead)
        SELECT id, user_id, received_at, 0 FROM found WHERE pending OR $2::boolean
        ON CONFLICT (replay_id) DO UPDATE SET ahead = 0
    )
    SELECT id::text, pending OR $2::boolean AS added FROM found
    """,
    row=lambda id, added: (id, added),
)


# Skips replays that are being deleted; otherwise this statement and the deletion could wait for each other.
@one(
    """
    WITH sweep AS (
        SELECT received_at, replay_id, checked_before FROM replay_sweep
        WHERE received_at > '-infinity' FOR UPDATE SKIP LOCKED
    ), page AS (
        SELECT found.id, found.user_id, found.received_at FROM sweep CROSS JOIN LATERAL (
            SELECT id, user_id, received_at FROM replays
            WHERE (replays.received_at, replays.id) < (sweep.received_at, sweep.replay_id)
            ORDER BY received_at DESC, id DESC LIMIT $1::int FOR KEY SHARE SKIP LOCKED
        ) AS found
    ), next AS (
        SELECT received_at, id FROM page ORDER BY received_at, id LIMIT 1
    ), moved AS (
        UPDATE replay_sweep
        SET received_at = coalesce((SELECT received_at FROM next), '-infinity'),
            replay_id = coalesce((SELECT id FROM next), replay_sweep.replay_id)
        FROM sweep
    ), added AS (
        INSERT INTO replay_checks (replay_id, user_id, received_at, ahead)
        SELECT page.id, page.user_id, page.received_at, old_check(page.received_at)
        FROM page CROSS JOIN sweep
        WHERE coalesce((SELECT checked_at < checked_before FROM verdicts WHERE verdicts.replay_id = page.id), true)
        ON CONFLICT DO NOTHING
        RETURNING replay_id
    )
    SELECT EXISTS (SELECT FROM page) AS any_left, (SELECT count(*) FROM added) AS added
    """,
    row=lambda any_left, added: added if any_left else None,
)
async def sweep(*, most: int) -> int | None:
    """Add replays without a verdict to the queue, from the next page of all replays.

    Return the number of added replays; None at the end.
    """


# Locks only the replays, and skips those that are locked: otherwise this statement and one that stores a verdict could
# wait for each other.
@one(
    f"""
    WITH outdated AS (
        (SELECT replay_id FROM verdicts WHERE status <> 'verified' AND engine < $1::int LIMIT $2::int)
        UNION ALL
        (SELECT replay_id FROM verdicts WHERE ruleset <> '{PREFERRED.name}' AND engine < $1::int LIMIT $2::int)
    ), found AS (
        SELECT id, user_id, received_at FROM replays WHERE id IN (SELECT replay_id FROM outdated)
        FOR KEY SHARE SKIP LOCKED
    ), added AS (
        INSERT INTO replay_checks (replay_id, user_id, received_at, ahead)
        SELECT id, user_id, received_at, old_check(received_at) FROM found
        ON CONFLICT DO NOTHING
        RETURNING replay_id
    )
    SELECT count(*) FROM added
    """,  # noqa: S608
    row=int,
)
async def enqueue_outdated(*, engine: int, most: int) -> int:
    """Queue replays whose verdicts by an older engine may change; return their number.

    These are replays that were not verified, or that were verified under an older ruleset.
    """


async def enqueue(statements: Statements, ids: Sequence[str], *, again: bool) -> dict[str, bool]:
    """Add these replays to the front of the queue; with `again`, even those that have a verdict.

    Return the ids that exist, and whether each was added.
    """
    return dict(await statements.many(ENQUEUE, list(ids), again))


@execute(
    """
    INSERT INTO replay_sweep (checked_before) VALUES (CASE WHEN $1::boolean THEN clock_timestamp() ELSE '-infinity' END)
    ON CONFLICT (id) DO UPDATE SET
        received_at = excluded.received_at, replay_id = excluded.replay_id, checked_before = excluded.checked_before
    """,
    prepared=False,
)
async def sweep_again(*, again: bool) -> None:
    """Start a check of all replays without a verdict, at the lowest priority; with `again`, of all others too."""
