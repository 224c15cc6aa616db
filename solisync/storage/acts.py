"""The record of operators' acts: docs/moderation.md "The record of acts"."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..postgres.statement import Call, Query, Statement
from ..postgres.transaction import Statements, Transaction
from ..rules.administration import Reason
from . import paging
from .accounts import Player

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
    """A recorded act; `user_id` and `username` are null if the player has been deleted."""

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

_SHOWN = """
    SELECT admin_acts.id, at, actor_kind || ':' || actor AS actor, act, reason, user_id, username, replay_id, note,
        before, after
"""
_CHOSEN = """
    AND ($2::text IS NULL OR act = $2::text) AND ($3::text IS NULL OR actor_kind || ':' || actor = $3::text)
"""

LIST = Query(
    "admin_list_acts",
    f"""
    {_SHOWN} FROM admin_acts LEFT JOIN admin_notes ON act_id = admin_acts.id LEFT JOIN users ON users.id = user_id
    WHERE admin_acts.id < $1::bigint {_CHOSEN}
    ORDER BY admin_acts.id DESC LIMIT $4::int
    """,
    prepared=False,
    row=RecordedAct,
)

LIST_OF_PLAYER = Query(
    "admin_list_acts_of_player",
    f"""
    {_SHOWN} FROM admin_notes JOIN admin_acts ON admin_acts.id = act_id JOIN users ON users.id = user_id
    WHERE act_id < $1::bigint AND user_id = $5::uuid {_CHOSEN}
    ORDER BY act_id DESC LIMIT $4::int
    """,
    prepared=False,
    row=RecordedAct,
)


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
    await statements.run(RECORD, *who, user_id, None, note, None, None)


async def page(
    statements: Statements,
    *,
    most: int,
    before: int = paging.LAST_NUMBER,
    act: str | None = None,
    actor: str | None = None,
    user_id: str | None = None,
) -> list[RecordedAct]:
    """Up to `most` acts older than `before`, newest first; optionally only of one name, one actor or one player."""
    wanted = (before, act, actor, most)
    if user_id is None:
        return await statements.many(LIST, *wanted)
    return await statements.many(LIST_OF_PLAYER, *wanted, user_id)


def listed(
    statements: Statements, *, act: str | None = None, actor: str | None = None, user_id: str | None = None
) -> AsyncIterator[list[RecordedAct]]:
    """All acts, newest first, in pages; optionally of one name, one actor, or one player and the player's replays."""

    async def read(after: RecordedAct | None) -> list[RecordedAct]:
        before = after.id if after else paging.LAST_NUMBER
        return await page(statements, most=paging.PAGE, before=before, act=act, actor=actor, user_id=user_id)

    return paging.pages(read, paging.PAGE)
