"""The record of operators' acts: docs/moderation.md "The record of acts"."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ...postgres.declared import found
from ...postgres.statement import Call, Query, Statement
from ...postgres.transaction import Statements, Transaction
from ...rules.administration import Reason
from .. import paging
from ..players.accounts import Player

EXPORT = "export"  # recorded like an act, although it changes nothing

ActorKind = Literal["admin", "shell", "service"]
TargetKind = Literal["player", "replay"]


@dataclass(frozen=True, slots=True)
class Actor:
    """The operator who acts; `client` and `request_id` come from the request, and are None for a command."""

    kind: ActorKind
    name: str
    client: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedAct:
    """A recorded act; `user_id` and `username` are null if the player has been deleted.

    `inverse` is the act that reverses it, or null if there is none or the effect no longer stands.
    """

    id: int
    at: datetime
    actor: str
    act: str
    reason: Reason | None
    user_id: str | None
    username: str | None
    replay_id: str | None
    note: str | None
    before: str | None
    after: str | None
    inverse: str | None


# The first statement of every act. It marks the transaction as an act: triggers that restrict players let it through.
LOCK_PLAYER = Query(
    "act_on_player",
    """
    SELECT id, username FROM users CROSS JOIN (SELECT set_config('solisync.act', 'on', true)) AS acting
    WHERE id = $1::uuid FOR UPDATE OF users
    """,
    row=Player,
)

# If the act has deleted the player, the note is not stored.
RECORD = Statement(
    "record_act",
    """
    WITH recorded AS (
        INSERT INTO admin_acts (actor_kind, actor, act, target, reason, client, request_id)
        VALUES ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text)
        RETURNING id
    )
    INSERT INTO admin_notes (act_id, user_id, replay_id, note, before, after)
    SELECT recorded.id, users.id, $9::uuid, $10::text, $11::text, $12::text
    FROM recorded JOIN users ON users.id = $8::uuid
    """,
)

# Each act that can be reversed, the act that reverses it, and whether its effect stands, by the current state.
INVERSES = {
    "suspend": ("unsuspend", "suspensions.user_id IS NOT NULL"),
    "unsuspend": ("suspend", "suspensions.user_id IS NULL"),
    "lock": ("unlock", "profile_locks.user_id IS NOT NULL"),
    "unlock": ("lock", "profile_locks.user_id IS NULL"),
    "hide": ("show", "NOT coalesce(was_visible, visible)"),
    "show": ("hide", "coalesce(was_visible, visible)"),
    "unlist": ("list_again", "held"),
    "list_again": ("unlist", "held IS NULL AND replays.id IS NOT NULL"),
    "rename": ("rename", "username = after"),
    "name": ("name", "display_name = after"),
}
_PAIRS = ", ".join(f"('{act}', '{inverse}')" for act, (inverse, _) in INVERSES.items())
_STANDS = " ".join(f"WHEN '{act}' THEN {stands}" for act, (_, stands) in INVERSES.items())

# The state is looked up for the acts of a page alone. A later act of the same kind, or its inverse, has replaced the
# effect.
_PAGE = f"""
    SELECT page.id, at, actor, act, reason, page.user_id, username, page.replay_id, note, before, after,
        CASE WHEN CASE act {_STANDS} END AND NOT EXISTS (
            SELECT FROM admin_notes AS later JOIN admin_acts AS done ON done.id = act_id
            WHERE later.user_id = page.user_id AND act_id > page.id AND done.act IN (page.act, pair.inverse)
                AND later.replay_id IS NOT DISTINCT FROM page.replay_id
        ) THEN pair.inverse END AS inverse
    FROM ({{}}) AS page
    LEFT JOIN (VALUES {_PAIRS}) AS pair (act, inverse) USING (act)
    LEFT JOIN users ON users.id = page.user_id
    LEFT JOIN suspensions ON suspensions.user_id = page.user_id
    LEFT JOIN profile_locks ON profile_locks.user_id = page.user_id
    LEFT JOIN leaderboard ON leaderboard.user_id = page.user_id
    LEFT JOIN replays ON replays.id = page.replay_id
    ORDER BY page.id DESC
"""  # noqa: S608
_CHOSEN = """
    SELECT admin_acts.id, at, actor_kind || ':' || actor AS actor, act, reason, user_id, replay_id, note, before, after
    FROM {}
    WHERE admin_acts.id < $1::bigint AND ($3::text IS NULL OR act = $3::text)
        AND ($4::text IS NULL OR actor_kind || ':' || actor = $4::text) AND ($5::text IS NULL OR reason = $5::text)
        AND at >= $6::timestamptz AND at < $7::timestamptz {}
    ORDER BY admin_acts.id DESC LIMIT $2::int
"""

LIST = Query(
    "admin_list_acts",
    _PAGE.format(_CHOSEN.format("admin_acts LEFT JOIN admin_notes ON act_id = admin_acts.id", "")),
    prepared=False,
    row=RecordedAct,
)

LIST_OF_PLAYER = Query(
    "admin_list_acts_of_player",
    _PAGE.format(
        _CHOSEN.format(
            "admin_notes JOIN admin_acts ON admin_acts.id = act_id", "AND act_id < $1::bigint AND user_id = $8::uuid"
        )
    ),
    prepared=False,
    row=RecordedAct,
)


@found(
    """
    SELECT true FROM admins WHERE name = $1::text
    UNION ALL SELECT true FROM admin_acts WHERE actor_kind = 'admin' AND actor = $1::text LIMIT 1
    """,
    prepared=False,
)
async def knows_admin(name: str) -> bool:
    """Return whether there is an admin of this name, or the record has acts of one."""


async def lock_player(transaction: Transaction, user_id: str) -> Player | None:
    """Lock a player for an act; None if the player no longer exists."""
    return await transaction.maybe(LOCK_PLAYER, user_id)


def recording(
    act: str,
    target: TargetKind,
    *,
    by: Actor,
    reason: Reason | None,
    note: str | None,
    user_id: str,
    replay_id: str | None,
    before: str | None,
    after: str | None,
) -> tuple[Call, ...]:
    """Return the steps that record an act on a player, or on one of the player's replays."""
    who = (by.kind, by.name, act, target, reason, by.client, by.request_id)
    return ((RECORD, *who, user_id, replay_id, note, before, after),)


async def record_export(
    statements: Statements, user_id: str, *, by: Actor, reason: Reason | None = None, note: str | None = None
) -> None:
    """Record that an operator exported a player's data."""
    who = (by.kind, by.name, EXPORT, "player", reason, by.client, by.request_id)
    await statements.run((RECORD, *who, user_id, None, note, None, None))


@dataclass(frozen=True, slots=True, kw_only=True)
class ActFilter:
    """Which acts a list has: of one name, actor and reason, from `since` until before `until`, on one player."""

    act: str | None = None
    actor: str | None = None
    reason: str | None = None
    since: datetime = paging.FIRST_TIME
    until: datetime = paging.END.time
    user_id: str | None = None


async def page(
    statements: Statements, chosen: ActFilter, *, most: int, before: int = paging.LAST_NUMBER
) -> list[RecordedAct]:
    """Up to `most` of these acts older than `before`, newest first. Those on a player's replays are on the player."""
    wanted = (before, most, chosen.act, chosen.actor, chosen.reason, chosen.since, chosen.until)
    if chosen.user_id is None:
        return await statements.many(LIST, *wanted)
    return await statements.many(LIST_OF_PLAYER, *wanted, chosen.user_id)


def listed(statements: Statements, chosen: ActFilter) -> AsyncIterator[list[RecordedAct]]:
    """All of these acts, newest first, in pages."""

    async def read(after: RecordedAct | None) -> list[RecordedAct]:
        before = after.id if after else paging.LAST_NUMBER
        return await page(statements, chosen, most=paging.PAGE, before=before)

    return paging.pages(read, paging.PAGE)
