"""Suspending players, ending suspensions, cutting off access tokens and locking profiles: docs/moderation.md.

All of it needs the lock of the player's row, and ends in the transaction that records the act.
"""

from datetime import datetime

from ..postgres.declared import count, many, one
from ..postgres.statement import Call, Query, Statement
from ..postgres.transaction import Transaction
from .accounts import REVOKE
from .recovery import forgetting_link

SUSPEND = Statement(
    "admin_suspend",
    """
    INSERT INTO suspensions (user_id, since, until, message, was_visible)
    VALUES (
        $1::uuid, clock_timestamp(), $2::timestamptz, $3::text,
        coalesce((SELECT visible FROM leaderboard WHERE user_id = $1::uuid), false)
    )
    """,
)
CHANGE = Statement(
    "admin_change_suspension",
    "UPDATE suspensions SET until = $2::timestamptz, message = $3::text WHERE user_id = $1::uuid",
)
HIDE = Statement(
    "admin_hide_suspended",
    "UPDATE leaderboard SET visible = false WHERE user_id = $1::uuid AND visible",
)
# Two statements on purpose: while there is a suspension, a trigger lets no entry become visible.
LIFT = Query(
    "lift_suspension",
    "DELETE FROM suspensions WHERE user_id = $1::uuid RETURNING was_visible",
    row=bool,
)
UNCOVER = Statement("uncover_entry", "UPDATE leaderboard SET visible = true WHERE user_id = $1::uuid")
VISIBLE_LATER = Statement(
    "admin_visible_later",
    "UPDATE suspensions SET was_visible = $2::boolean WHERE user_id = $1::uuid",
)

# The greatest `exp` that a token may have by now. That of a node whose clock is fast is among the player's last ones;
# no other token can be issued meanwhile.
CUT_OFF = Statement(
    "admin_cut_off",
    """
    INSERT INTO access_cutoffs AS known (user_id, cutoff)
    SELECT id, greatest(
        ceil(extract(epoch FROM clock_timestamp()))::bigint + $2::int,
        (SELECT max(each) FROM unnest(access_expiries) AS each)
    )
    FROM users WHERE id = $1::uuid
    ON CONFLICT (user_id) DO UPDATE SET cutoff = greatest(known.cutoff, excluded.cutoff)
    """,
)

LOCK_PROFILE = Statement(
    "admin_lock_profile",
    "INSERT INTO profile_locks (user_id, since) VALUES ($1::uuid, clock_timestamp())",
)
UNLOCK_PROFILE = Statement("admin_unlock_profile", "DELETE FROM profile_locks WHERE user_id = $1::uuid")


def suspending(user_id: str, *, until: datetime | None, message: str | None) -> tuple[Call, ...]:
    """Suspend a player who is not: off the boards, and without sessions and a reset link."""
    return ((SUSPEND, user_id, until, message), (HIDE, user_id), (REVOKE, user_id), *forgetting_link(user_id))


def changing(user_id: str, *, until: datetime | None, message: str | None) -> tuple[Call, ...]:
    """Give a suspension another end and message."""
    return ((CHANGE, user_id, until, message),)


def showing_later(user_id: str, visible: bool) -> tuple[Call, ...]:
    """Decide whether the entry of a suspended player is visible afterwards."""
    return ((VISIBLE_LATER, user_id, visible),)


def cutting_off(user_id: str, *, lifetime: int) -> tuple[Call, ...]:
    """Refuse every access token that has been issued to the player; such tokens live for this many seconds."""
    return ((CUT_OFF, user_id, lifetime),)


def locking(user_id: str) -> tuple[Call, ...]:
    """Lock the profile of a player, which is not locked."""
    return ((LOCK_PROFILE, user_id),)


def unlocking(user_id: str) -> tuple[Call, ...]:
    """Unlock the profile of a player."""
    return ((UNLOCK_PROFILE, user_id),)


async def lift(transaction: Transaction, user_id: str) -> tuple[Call, ...]:
    """End a suspension; returns the steps that show again what was visible."""
    was_visible = await transaction.one(LIFT, user_id)
    return ((UNCOVER, user_id),) if was_visible else ()


# Whether a token may count that a cutoff would end: always where there is none.
@one(
    """
    SELECT NOT EXISTS (
        SELECT FROM access_cutoffs
        WHERE user_id = users.id AND cutoff >= coalesce((SELECT max(each) FROM unnest(access_expiries) AS each), 0)
    )
    FROM users WHERE id = $1::uuid
    """,
    row=bool,
)
async def is_uncut(user_id: str) -> bool:
    """Whether an access token may have been issued to the player that no cutoff refuses."""


@many("SELECT user_id FROM suspensions WHERE until <= (SELECT clock_timestamp()) ORDER BY until LIMIT $1::int", row=str)
async def expired(*, most: int) -> list[str]:
    """The players whose suspension is over, up to so many."""


@count("""
    DELETE FROM access_cutoffs WHERE user_id IN (
        SELECT user_id FROM access_cutoffs
        WHERE cutoff < (SELECT extract(epoch FROM clock_timestamp() - interval '1 hour'))
        LIMIT $1::int FOR UPDATE SKIP LOCKED
    ) RETURNING true
    """)
async def prune(*, most: int) -> int:
    """Forget up to so many cutoffs that no token can be below any more; returns how many."""
