"""Restrictions of players: suspensions, cutoffs of access tokens, and profile locks (docs/moderation.md).

Changes need the lock of the player's row. The transaction that makes them also records the act.
"""

from dataclasses import dataclass
from datetime import datetime

from ...postgres.declared import count, execute, many, maybe, one
from ...postgres.statement import Call, Query, Statement
from ...postgres.transaction import Statements, Transaction
from ...rules.export import ExportedAct, ExportedModeration, ExportedSuspension
from ..retention import BEHIND, NOW
from ..rows import nested, optional
from .accounts import REVOKE
from .leaderboard import show
from .recovery import forget_link


@dataclass(frozen=True, slots=True)
class Suspension:
    """A suspension. `was_visible`: the leaderboard entry will be visible again. `ended`: it is over.

    It ends by the retention clock, which is `behind` by this many seconds.
    """

    until: datetime | None
    message: str | None
    was_visible: bool
    ended: bool
    behind: int


@dataclass(frozen=True, slots=True)
class RestrictionSet:
    """All suspended players, with `untils` and `messages`, and all players with cutoffs of access tokens, in columns.

    All columns are None if `number` is the known one. Suspensions end by the retention clock, which is `behind` by this
    many seconds.
    """

    number: int
    behind: int
    suspended: list[str] | None
    untils: list[datetime | None] | None
    messages: list[str | None] | None
    cut_off: list[str] | None
    cutoffs: list[int] | None


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
HIDE = Statement(
    "admin_hide_suspended",
    "UPDATE leaderboard SET visible = false WHERE user_id = $1::uuid AND visible",
)
# `show` follows as a statement of its own: while a suspension exists, a trigger keeps the entry hidden.
LIFT = Query(
    "lift_suspension",
    "DELETE FROM suspensions WHERE user_id = $1::uuid RETURNING was_visible",
    row=bool,
)
RESTRICTIONS = Query(
    "restrictions_of_player",
    """
    SELECT suspensions.since, until, message, was_visible, profile_locks.since AS locked_since, cutoff AS access_cutoff
    FROM users
    LEFT JOIN suspensions ON suspensions.user_id = users.id
    LEFT JOIN access_cutoffs ON access_cutoffs.user_id = users.id
    LEFT JOIN profile_locks ON profile_locks.user_id = users.id
    WHERE users.id = $1::uuid
    """,
    row=nested(
        lambda *found: found,
        optional(ExportedSuspension),
        lambda locked_since: locked_since,
        lambda access_cutoff: access_cutoff,
    ),
)
ACTS = Query(
    "acts_on_player",
    """
    SELECT at, act, replay_id, reason, note, before, after
    FROM admin_notes JOIN admin_acts ON admin_acts.id = act_id WHERE user_id = $1::uuid ORDER BY act_id
    """,
    row=ExportedAct,
)


# One statement, so that all values are of the same moment. Without a row in restriction_number, nothing was ever
# restricted.
@one(
    f"""
    SELECT number, {BEHIND} AS behind, suspended, untils, messages, cut_off, cutoffs
    FROM (SELECT coalesce((SELECT number FROM restriction_number), 0) AS number) AS known
    LEFT JOIN LATERAL (
        SELECT coalesce(array_agg(user_id::text), '{{}}') AS suspended, array_agg(until) AS untils,
            array_agg(message) AS messages
        FROM suspensions
    ) AS suspension ON number <> $1::bigint
    LEFT JOIN LATERAL (
        SELECT coalesce(array_agg(user_id::text), '{{}}') AS cut_off, array_agg(cutoff) AS cutoffs FROM access_cutoffs
    ) AS cutting ON number <> $1::bigint
    """,  # noqa: S608
    row=RestrictionSet,
)
async def load(known: int) -> RestrictionSet:
    """The number of the restrictions, and all of them unless that number is `known`."""


@maybe(
    f"""
    SELECT until, message, was_visible, coalesce(until <= {NOW}, false) AS ended, {BEHIND} AS behind
    FROM suspensions WHERE user_id = $1::uuid
    """,  # noqa: S608
    row=Suspension,
)
async def suspension(user_id: str) -> Suspension | None:
    """The suspension of a player; None if the player isn't suspended."""


@one("SELECT EXISTS (SELECT FROM profile_locks WHERE user_id = $1::uuid)", row=bool)
async def is_locked(user_id: str) -> bool:
    """Return whether the profile of a player is locked."""


async def moderation(statements: Statements, user_id: str) -> ExportedModeration:
    """The restrictions of a player, and the acts on the player; nothing if the player no longer exists."""
    suspension, locked_since, access_cutoff = await statements.maybe(RESTRICTIONS, user_id) or (None, None, None)
    acts = await statements.many(ACTS, user_id)
    return ExportedModeration(suspension, locked_since, access_cutoff, acts)


def suspending(user_id: str, *, until: datetime | None, message: str | None) -> tuple[Call, ...]:
    """Steps that suspend a player: they hide the entry and end the sessions and the reset link."""
    return ((SUSPEND, user_id, until, message), (HIDE, user_id), (REVOKE, user_id), forget_link.call(user_id))


@execute("UPDATE suspensions SET until = $2::timestamptz, message = $3::text WHERE user_id = $1::uuid")
async def change(user_id: str, *, until: datetime | None, message: str | None) -> None:
    """Change the end and the message of a suspension."""


@execute("UPDATE suspensions SET was_visible = $2::boolean WHERE user_id = $1::uuid")
async def show_later(user_id: str, visible: bool) -> None:
    """Set whether a suspended player's entry will be visible after the suspension."""


# The cutoff is the greatest `exp` that any of the player's tokens may have. A node whose clock is fast may have issued
# a later one, which is among the player's recorded values. No token can be issued while this statement runs.
@execute("""
    INSERT INTO access_cutoffs AS known (user_id, cutoff)
    SELECT id, greatest(
        ceil(extract(epoch FROM clock_timestamp()))::bigint + $2::int,
        (SELECT max(each) FROM unnest(access_expiries) AS each)
    )
    FROM users WHERE id = $1::uuid
    ON CONFLICT (user_id) DO UPDATE SET cutoff = greatest(known.cutoff, excluded.cutoff)
    """)
async def cut_off(user_id: str, *, lifetime: int) -> None:
    """Refuse every access token issued to the player so far; such tokens live for this many seconds."""


@execute("INSERT INTO profile_locks (user_id, since) VALUES ($1::uuid, clock_timestamp())")
async def lock(user_id: str) -> None:
    """Lock the profile of a player, which must not be locked."""


@execute("DELETE FROM profile_locks WHERE user_id = $1::uuid")
async def unlock(user_id: str) -> None:
    """Unlock the profile of a player."""


async def lift(transaction: Transaction, user_id: str) -> tuple[Call, ...]:
    """End a suspension; return the steps that restore visibility."""
    was_visible = await transaction.one(LIFT, user_id)
    return (show.call(user_id, True),) if was_visible else ()


# True if a valid token may exist that a new cutoff would refuse; so always without a cutoff.
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
    """Return whether the player may have an access token that no cutoff refuses."""


@many(f"SELECT user_id FROM suspensions WHERE until <= {NOW} ORDER BY until LIMIT $1::int", row=str)  # noqa: S608
async def expired(*, most: int) -> list[str]:
    """Up to `most` players whose suspensions have ended."""


# A cutoff is kept for two days longer than the tokens that it refuses: in these two days, a clock that is wrong for two
# hours is noticed before it has deleted a cutoff.
@count("""
    DELETE FROM access_cutoffs WHERE user_id IN (
        SELECT user_id FROM access_cutoffs
        WHERE cutoff < (SELECT extract(epoch FROM now - interval '49 hours') FROM retention)
        LIMIT $1::int FOR UPDATE SKIP LOCKED
    ) RETURNING true
    """)
async def prune(*, most: int) -> int:
    """Delete up to `most` cutoffs that are older than any live token; return their number."""
