"""Players' progress, one merged JSON document each: docs/sync.md."""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

import msgspec

from ...postgres.declared import count, maybe
from ...postgres.statement import Call, Query, Statement
from ...postgres.transaction import Statements, Transaction
from ...rules.counting import NO_GAMES, NOTHING_KNOWN, GameCounts, Known
from ...rules.leaderboard import Bests, Standing
from ..rows import encoded
from .accounts import LOCK
from .leaderboard import improving
from .sessions import NAMED


@dataclass(frozen=True, slots=True)
class Pulled:
    """A player's document; None before the first push. `uncounted`: the version that stored it counts no games."""

    payload: bytes | None
    uncounted: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """The document to merge a push into, if any, and the player's standing on the leaderboard."""

    payload: bytes | None
    standing: Standing
    counts: GameCounts | None  # the counts of the document; None if an older version stored it
    session: str | None  # the session's id; None if the access token names none
    known: Known  # the state of the session's device


def saved_from(
    payload: str | None,
    counted: str | None,
    session_id: str | None,
    pushed: str | None,
    answers: list[str] | None,
    visible: bool | None,
    best_score: int | None,
    best_time_secs: int | None,
) -> Saved:
    """Build a value from the row of LOAD."""
    known = NOTHING_KNOWN if answers is None else Known(_counts(pushed), tuple(map(_decode_counts, answers)))
    standing = Standing(visible, best_score, best_time_secs)
    return Saved(encoded(payload), standing, _counts(counted), session_id, known)


_decode_counts = msgspec.json.Decoder(GameCounts).decode


def _counts(text: str | None) -> GameCounts | None:
    return None if text is None else _decode_counts(text)


PULL_UNCOUNTED = Statement("sync_pull_uncounted", "SELECT remember_foreign($1::uuid, $2::bigint, $3::text, $4::text)")

SAVED = """
        payload, counted, session.session_id, pushed, answers, leaderboard.visible, best_score, best_time_secs
"""
"""SQL for the columns of `saved_from`."""
OF_PLAYER = f"""
    FROM users
    LEFT JOIN sync_states ON sync_states.user_id = id
    LEFT JOIN leaderboard ON leaderboard.user_id = id
    LEFT JOIN LATERAL (
        SELECT session_id FROM refresh_tokens WHERE user_id = users.id AND {NAMED} ORDER BY session_id LIMIT 1
    ) AS session ON true
    LEFT JOIN known_states AS known ON known.session_id = session.session_id
"""  # noqa: S608
"""SQL for the tables of SAVED, with the session that the token of $1 and $2 names."""

# Runs as a separate statement, because only a snapshot taken after the lock sees the push that held the lock before.
LOAD = Query("sync_load", f"SELECT {SAVED} {OF_PLAYER} WHERE id = $1::uuid", row=saved_from)

# LOAD runs as EXECUTE, whose snapshot is older than the table lock that it waits for. If an ALTER TABLE had that lock
# and rewrote the table, LOAD finds no document although there is one. So the first push of a player inserts and never
# overwrites: `exactly_one` aborts the transaction, and the next attempt finds the document.
SAVE_FIRST = Statement(
    "sync_save_first",
    """
    WITH saved AS (
        INSERT INTO sync_states (user_id, payload, counted, revision) VALUES ($1::uuid, $2::text, $3::text, 1)
        ON CONFLICT (user_id) DO NOTHING
        RETURNING true
    )
    SELECT exactly_one(count(*)) FROM saved
    """,
)

SAVE = Statement(
    "sync_save",
    """
    WITH saved AS (
        UPDATE sync_states SET payload = $2::text, counted = $3::text, revision = coalesce(revision, 0) + 1
        WHERE user_id = $1::uuid RETURNING true
    )
    SELECT exactly_one(count(*)) FROM saved
    """,
)

ANSWERED = Statement("sync_answered", "SELECT remember_answer($1::uuid, $2::bigint, $3::text)")

# Keeps answers that pulls have given since LOAD: $5 has those that LOAD has seen.
REMEMBER = Statement(
    "sync_remember",
    """
    INSERT INTO known_states AS known (session_id, user_id, pushed, answers, pushed_at)
    VALUES ($1::uuid, $2::uuid, $3::text, $4::text[], clock_timestamp())
    ON CONFLICT (session_id) DO UPDATE SET
        pushed = excluded.pushed,
        pushed_at = excluded.pushed_at,
        answers = ARRAY(SELECT unnest(known.answers) EXCEPT SELECT unnest($5::text[])) || excluded.answers
    """,
)
# Deletes even answers that pulls have given since LOAD, because this answer covers them.
REMEMBER_FOR_ALL = Statement(
    "sync_remember_for_all",
    """
    INSERT INTO known_states (session_id, user_id, answers, pushed_at)
    SELECT DISTINCT session_id, user_id, ARRAY[$2::text], now() FROM refresh_tokens
    WHERE user_id = $1::uuid AND expires_at > clock_timestamp() ORDER BY session_id
    ON CONFLICT (session_id) DO UPDATE SET pushed = NULL, answers = excluded.answers, pushed_at = excluded.pushed_at
    """,
)


# `remember_answer` compares with the answers that the session already had, and writes only new ones.
@maybe(
    f"""
    SELECT payload, payload IS NOT NULL AND counted IS NULL AS uncounted,
        remember_answer(id, $2::bigint, CASE WHEN payload IS NULL THEN '{NO_GAMES.encode()}' ELSE counted END)
    FROM users LEFT JOIN sync_states ON user_id = id WHERE id = $1::uuid
    """,  # noqa: S608
    row=lambda payload, uncounted, remember_answer: Pulled(encoded(payload), uncounted),
)
async def pull(user_id: str, expiry: int) -> Pulled | None:
    """The player's document, recorded as known to the session of the access token; None if the player doesn't exist."""


async def pull_uncounted(statements: Statements, user_id: str, expiry: int, payload: bytes, counts: GameCounts) -> None:
    """Record that the session received a document that no version has counted, and store its counts."""
    await statements.run((PULL_UNCOUNTED, user_id, expiry, counts.encode(), sha256(payload).hexdigest()))


@maybe(
    "SELECT payload FROM users LEFT JOIN sync_states ON user_id = id WHERE id = $1::uuid",
    prepared=False,
    row=lambda payload: Pulled(encoded(payload)),
)
async def read(user_id: str) -> Pulled | None:
    """The player's document, without recording it for a session; None if the player doesn't exist."""


async def load(transaction: Transaction, user_id: str, expiry: int | None) -> Saved | None:
    """Lock the player's row and read what a push needs; None if the player no longer exists."""
    return await transaction.maybe(LOAD, user_id, expiry, first=(LOCK, user_id))


def saving(
    user_id: str, payload: bytes, counts: GameCounts, bests: Bests | None, now: datetime, *, first: bool
) -> tuple[Call, ...]:
    """Store the merged document, and improve the leaderboard entry by `bests` if given. Needs the lock of `load`.

    `first`: whether `load` found no document. The steps raise TransactionAborted if that is no longer true.
    """
    save = (SAVE_FIRST if first else SAVE, user_id, payload.decode(), counts.encode())
    return (save, *improving(user_id, bests, now))


def remembering(user_id: str, saved: Saved, known: Known) -> Call:
    """Record the state of the session's device after the answer to its push.

    A token that names no session may belong to any of the player's devices. That device may have pushed games that its
    session's record lacks. So this answer replaces the records of all of the player's sessions.
    """
    answers = [counts.encode() for counts in known.answers]
    if saved.session is None:
        return (REMEMBER_FOR_ALL, user_id, answers[-1])
    last = None if known.pushed is None else known.pushed.encode()
    return (REMEMBER, saved.session, user_id, last, answers, [counts.encode() for counts in saved.known.answers])


def answering(user_id: str, expiry: int, counts: GameCounts) -> Call:
    """Record an answer with these counts as one that the session of the access token may have received."""
    return (ANSWERED, user_id, expiry, counts.encode())


# Deletes rows of sessions that have expired. The search begins at any id, so that a round costs the same however many
# rows there are.
@count("""
    DELETE FROM known_states WHERE session_id IN (
        SELECT session_id FROM (
            SELECT session_id, user_id FROM known_states WHERE session_id > $1::uuid ORDER BY session_id LIMIT $2::int
        ) AS page
        WHERE NOT EXISTS (
            SELECT FROM refresh_tokens AS live
            WHERE live.user_id = page.user_id AND live.session_id = page.session_id
        )
    ) RETURNING true
    """)
async def prune(*, start: str, most: int) -> int:
    """Delete the records of ended sessions, among up to `most` from the id `start` on; return their number."""
