"""The leaderboard, with an entry for each player who ever opted in: docs/protocol.md "The leaderboard"."""

from datetime import datetime

from ...postgres.declared import execute, found, many, maybe
from ...postgres.statement import Call, Statement
from ...postgres.transaction import Transaction
from ...rules.boards import OWN
from ...rules.leaderboard import ENTRIES, Bests, Entry, OwnEntry

# The limit is not a parameter: without a constant, the planner expects to read and sort a tenth of the table. The
# subquery isn't an EXISTS, because for that the planner may read all evidence into a hash table.
VERIFIED = f"""(
        SELECT true FROM board_evidence AS own
        WHERE own.user_id = leaderboard.user_id AND board = '{OWN}' AND deficit = -best_score LIMIT 1
    ) IS NOT NULL"""  # noqa: S608

# Version 1.0.0 stored exponents of any size, which PostgreSQL may refuse. A number of at most 64 characters and at most
# 2^53 whose exponent has four digits is about 0, and so is not the score of an entry.
SCORE = "CASE WHEN final_score !~ '[eE][+-]?0*[1-9][0-9]{3}' THEN floor(final_score::numeric) END"


def claim_of(entry: str) -> str:
    """SQL for the newest replay that claims the best score of this row of the leaderboard."""
    return f"""
        SELECT id, coalesce(status, 'pending') AS verdict, proved FROM replays LEFT JOIN verdicts ON replay_id = id
        WHERE user_id = {entry}.user_id AND mode = 'Classic' AND {SCORE} = best_score
        ORDER BY received_at DESC, id DESC LIMIT 1
    """  # noqa: S608


# greatest and least ignore nulls, so a best that doesn't count (null) leaves the entry as it is.
IMPROVE = Statement(
    "leaderboard_improve",
    """
    UPDATE leaderboard
    SET best_score = greatest(best_score, $2::int),
        best_time_secs = least(best_time_secs, $3::int),
        recorded_at = $4::timestamptz
    WHERE user_id = $1::uuid
      AND (greatest(best_score, $2::int), least(best_time_secs, $3::int)) IS DISTINCT FROM (best_score, best_time_secs)
    RETURNING visible
    """,
)

OPT_IN = Statement(
    "leaderboard_opt_in",
    """
    INSERT INTO leaderboard AS known (user_id, display_name, best_score, best_time_secs, recorded_at, visible)
    VALUES ($1::uuid, $2::text, $3::int, $4::int, $5::timestamptz, true)
    ON CONFLICT (user_id) DO UPDATE SET
        display_name = excluded.display_name,
        best_score = greatest(known.best_score, excluded.best_score),
        best_time_secs = least(known.best_time_secs, excluded.best_time_secs),
        recorded_at = excluded.recorded_at,
        visible = true
    WHERE NOT known.visible OR (
        excluded.display_name,
        greatest(known.best_score, excluded.best_score),
        least(known.best_time_secs, excluded.best_time_secs)
    ) IS DISTINCT FROM (known.display_name, known.best_score, known.best_time_secs)
    """,
)


@many(
    f"""
    SELECT display_name, best_score, best_time_secs, recorded_at, {VERIFIED} AS verified
    FROM leaderboard WHERE visible
    ORDER BY best_score DESC NULLS LAST, best_time_secs ASC NULLS LAST, recorded_at, user_id
    LIMIT {ENTRIES}
    """,  # noqa: S608
    row=Entry,
)
async def top() -> list[Entry]:
    """Up to ENTRIES visible entries, best first."""


# Returns a row for every player, with or without an entry.
@maybe(
    """
    SELECT coalesce(visible, false) AS visible, display_name, best_score, best_time_secs
    FROM users LEFT JOIN leaderboard ON user_id = id WHERE id = $1::uuid
    """,
    row=OwnEntry,
)
async def own(user_id: str) -> OwnEntry | None:
    """The player's own entry, visible or not; None if the player doesn't exist."""


# Returns a row for every player who exists, with or without an entry. The player's row is locked first, because a
# trigger corrects the boards.
@found("""
    WITH player AS (
        SELECT id FROM users WHERE id = $1::uuid FOR NO KEY UPDATE
    ), hidden AS (
        UPDATE leaderboard SET visible = false FROM player WHERE user_id = player.id AND visible
    )
    SELECT true FROM player
    """)
async def opt_out(user_id: str) -> bool:
    """Hide the player's entry, keeping its bests; False if the player doesn't exist."""


async def opt_in(transaction: Transaction, user_id: str, display_name: str, bests: Bests, now: datetime) -> None:
    """Show the player's entry under this name, improved by these bests. Needs the lock of the player's row."""
    await transaction.run((OPT_IN, user_id, display_name, bests.score, bests.seconds, now))


def improving(user_id: str, bests: Bests | None, now: datetime) -> tuple[Call, ...]:
    """Improve the player's entry by these bests; no steps without them. Needs the lock of the player's row."""
    return () if bests is None else ((IMPROVE, user_id, bests.score, bests.seconds, now),)


@execute("UPDATE leaderboard SET visible = $2::boolean WHERE user_id = $1::uuid")
async def show(user_id: str, visible: bool) -> None:
    """Show or hide the player's entry. Needs the lock of the player's row."""


@execute("UPDATE leaderboard SET display_name = $2::text, recorded_at = clock_timestamp() WHERE user_id = $1::uuid")
async def name(user_id: str, display_name: str) -> None:
    """Rename the player's entry. Needs the lock of the player's row."""
