"""The queue of replays that wait to be checked: docs/verification.md "How replays get checked".

One table holds two queues, for literal checks and for searches. A trigger adds new uploads to the first. `rechecks.py`
adds old replays behind the uploads of players who are waiting.
"""

from binascii import b2a_base64
from dataclasses import dataclass
from datetime import datetime

import msgspec

from ...klondike import Proved, Verdict
from ...postgres.declared import count, maybe, one
from ...postgres.statement import Query, Statement
from ...postgres.transaction import Statements, Transaction
from ..rows import converted

ATTEMPTS = 3  # a replay's claims that may lapse
COUNTED = 10_000  # the most replays that are counted in each queue
OLD = 1_000_000  # an old replay's `ahead` is at least this, behind all uploads; also in migrations/baseline.sql


@dataclass(frozen=True, slots=True)
class ClaimedReplay:
    """A replay to check, and the facts that decide which days' boards rank it."""

    body: bytes
    mode: str
    seed: int | None
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A replay that this node checks until `until`, which also identifies the claim.

    `attempt` counts the claims of this replay in its queue, of which all earlier ones have lapsed.
    """

    replay_id: str
    user_id: str
    until: datetime
    attempt: int


@dataclass(frozen=True, slots=True)
class QueueLengths:
    """Replays in each queue, including claimed ones, and the age of the oldest upload."""

    literal: int
    search: int
    old: int
    oldest_seconds: float


READ = Query(
    "read_claimed_replay",
    "SELECT body, mode, seed, received_at FROM replays WHERE id = $1::uuid",
    row=converted(ClaimedReplay, body=str.encode, seed=int),
)

RENEW = Query(
    "renew_check",
    """
    UPDATE replay_checks SET claimed_until = clock_timestamp() + $3::float8 * interval '1 second'
    WHERE replay_id = $1::uuid AND claimed_until = $2::timestamptz
    RETURNING claimed_until
    """,
    row=lambda until: until,
)

RELEASE = Statement(
    "release_check",
    """
    UPDATE replay_checks SET claimed_until = NULL, attempts = attempts - 1
    WHERE replay_id = $1::uuid AND claimed_until = $2::timestamptz
    """,
)

# An old replay stays behind all others.
SEARCH = Statement(
    "search_check",
    f"""
    UPDATE replay_checks
    SET search = true, claimed_until = NULL, attempts = 0,
        ahead = CASE WHEN ahead >= {OLD} THEN ahead ELSE checks_ahead(user_id, true, received_at) END
    WHERE replay_id = $1::uuid AND claimed_until = $2::timestamptz
    """,  # noqa: S608
)

# An older node, which may run while a cluster is upgraded, doesn't overwrite the verdict of a newer engine. A check
# that ended without a result doesn't overwrite a proof.
SETTLE = Query(
    "settle_check",
    """
    WITH former AS (
        SELECT (status, reason, ruleset, undos, score, moves) AS shown FROM verdicts WHERE replay_id = $1::uuid
    ), settled AS (
        DELETE FROM replay_checks WHERE replay_id = $1::uuid AND claimed_until = $2::timestamptz RETURNING replay_id
    ), kept AS (
        UPDATE verdicts SET engine = greatest(engine, $9::int)
        WHERE replay_id = (SELECT replay_id FROM settled) AND status = 'verified' AND $3::text = 'undecided'
        RETURNING replay_id
    ), stored AS (
        INSERT INTO verdicts AS known
            (replay_id, status, reason, ruleset, undos, score, moves, checked_at, engine, timeline_digest, undo_places,
                boards, proved)
        SELECT replay_id, $3::text, $4::text, $5::text, $6::int, $7::int, $8::int, clock_timestamp(), $9::int,
            decode($10::text, 'base64'), $11::smallint[], $12::text[],
            $13::text
        FROM settled WHERE NOT EXISTS (SELECT FROM kept)
        ON CONFLICT (replay_id) DO UPDATE SET
            status = excluded.status, reason = excluded.reason, ruleset = excluded.ruleset, undos = excluded.undos,
            score = excluded.score, moves = excluded.moves, checked_at = excluded.checked_at, engine = excluded.engine,
            timeline = NULL, timeline_digest = excluded.timeline_digest, undo_places = excluded.undo_places,
            boards = excluded.boards, proved = excluded.proved
        WHERE known.engine <= excluded.engine
        RETURNING (status, reason, ruleset, undos, score, moves) AS shown
    )
    SELECT stored.shown IS DISTINCT FROM former.shown FROM stored LEFT JOIN former ON true
    """,
    row=bool,
)


# Locks only this row, and only for this statement, so no claim waits for another. A separate statement reads the
# replay: if reading fails, as when the disk has lost a part of the replay, the attempt still counts.
@maybe(
    """
    WITH first AS (
        SELECT replay_id FROM replay_checks
        WHERE search = $1::boolean AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
        ORDER BY ahead, received_at, replay_id
        LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    UPDATE replay_checks AS mine
    SET claimed_until = clock_timestamp() + $2::float8 * interval '1 second', attempts = mine.attempts + 1
    FROM first
    WHERE mine.replay_id = first.replay_id
    RETURNING mine.replay_id, mine.user_id, claimed_until AS until, mine.attempts AS attempt
    """,
    row=Claim,
)
async def claim(*, search: bool, seconds: float) -> Claim | None:
    """Claim the first replay of a queue that is not claimed."""


async def read(statements: Statements, claim: Claim) -> ClaimedReplay | None:
    """The replay of a claim; None if the replay has been deleted."""
    return await statements.maybe(READ, claim.replay_id)


async def renew(statements: Statements, claim: Claim, *, seconds: float) -> datetime | None:
    """Prolong a claim and return its new `until`; None if another node has it or the replay is deleted."""
    return await statements.maybe(RENEW, claim.replay_id, claim.until, seconds)


async def release(statements: Statements, claim: Claim) -> None:
    """Give a claim back without counting the attempt."""
    await statements.run((RELEASE, claim.replay_id, claim.until))


async def search(statements: Statements, claim: Claim) -> None:
    """Move a replay to the end of the queue for searches."""
    await statements.run((SEARCH, claim.replay_id, claim.until))


async def settle(
    transaction: Transaction,
    claim: Claim,
    verdict: Verdict,
    *,
    engine: int,
    timeline_digest: bytes | None,
    days: list[str] | None,
    proved: Proved | None,
) -> bool:
    """Store the verdict and end the check, unless another node has the claim. Needs the lock of the player's row.

    `days` are the boards of days that rank a verified replay; `proved` is what the moves of any other replay prove.
    Return whether the verdict has changed.
    """
    facts = (verdict.ruleset, verdict.undos, verdict.score, verdict.moves, engine)
    digest = None if timeline_digest is None else b2a_base64(timeline_digest, newline=False).decode("ascii")
    places = list(verdict.undo_places) or None
    reason = None if verdict.reason is None else verdict.reason.value
    shown = None if proved is None else msgspec.json.encode(proved).decode()
    values = (verdict.status.value, reason, *facts, digest, places, days, shown)
    return await transaction.maybe(SETTLE, claim.replay_id, claim.until, *values) or False


@one(
    f"""
    WITH uploads AS (
        (SELECT search, received_at FROM replay_checks WHERE search = false AND ahead < {OLD} LIMIT {COUNTED})
        UNION ALL
        (SELECT search, received_at FROM replay_checks WHERE search = true AND ahead < {OLD} LIMIT {COUNTED})
    )
    SELECT count(*) FILTER (WHERE NOT search) AS literal, count(*) FILTER (WHERE search) AS search,
        (SELECT count(*) FROM (SELECT FROM replay_checks WHERE ahead >= {OLD} LIMIT {COUNTED}) AS old) AS old,
        coalesce(extract(epoch FROM clock_timestamp() - min(received_at)), 0)::float8 AS oldest_seconds
    FROM uploads
    """,  # noqa: S608
    row=QueueLengths,
)
async def waiting() -> QueueLengths:
    """The lengths of the queues."""


@count("""
    DELETE FROM recent_searches WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM recent_searches WHERE ended_at < now() - interval '1 hour'
        ORDER BY ended_at LIMIT $1::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """)
async def prune_searches(*, most: int) -> int:
    """Forget up to `most` searches that ended more than an hour ago; return their number.

    A trigger stores each search that ends. Players take turns by their searches in the last hour.
    """
