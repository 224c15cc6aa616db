"""A player's replays: listing them page by page, hiding and deleting them (docs/protocol.md "Replays")."""

from dataclasses import dataclass
from operator import attrgetter

from ...postgres.declared import maybe
from ...postgres.statement import Query
from ...postgres.transaction import Statements
from ...rules.queries import ListPosition
from ...rules.replay_lists import RECENT_MAX, OwnReplay, Recent
from .. import paging
from ..players.accounts import SUSPENDED
from ..rows import converted
from .replays import NUMBERS, SHOWN


@dataclass(frozen=True, slots=True)
class ListedOrHeld:
    """The result of `set_listed`; `held`: it was to be listed, but an operator holds it."""

    exists: bool
    held: bool
    changed: bool


@dataclass(frozen=True, slots=True)
class Deleted:
    """The result of `delete`: whether the player had the replay, and whether it was listed."""

    existed: bool
    was_listed: bool


_order = attrgetter("received_at", "id")

_SHOWN = f"""
    SELECT replay.id, {SHOWN},
        coalesce((SELECT status FROM verdicts WHERE replay_id = replay.id), 'pending') AS verdict"""  # noqa: S608


def _page(condition: str) -> str:
    """SQL for a page of replays of the player in `users`.

    A nested loop over one player keeps the order of the index, without a sort. An equality instead of the two
    comparisons would also fit the index replays_recent, which leads past the replays of all players. The limit is not a
    parameter: without a constant, the planner expects to read and sort a tenth of the replays.
    """
    return f"""LATERAL (
        SELECT id, seed, draw_mode, mode, time_seconds, final_score, recorded_at, received_at, unlisted, size
        FROM replays
        WHERE (user_id, received_at, id) < (users.id, $2::timestamptz, $3::uuid) AND user_id >= users.id {condition}
        ORDER BY user_id DESC, received_at DESC, id DESC LIMIT {RECENT_MAX + 1}
    ) AS replay ON true"""  # noqa: S608


LIST = Query(
    "own_replays",
    f"{_SHOWN}, unlisted IS NULL AS listed, size FROM users LEFT JOIN {_page('')} WHERE users.id = $1::uuid",
    row=converted(OwnReplay, **NUMBERS),
)

# Uses an index of listed replays, and so never reads past unlisted ones.
LISTED = Query(
    "listed_replays_of_player",
    f"""
    {_SHOWN} FROM users JOIN {_page("AND unlisted IS NULL")}
    WHERE username = $1::text AND NOT (SELECT {SUSPENDED})
    """,
    row=converted(Recent, **NUMBERS),
)

# A trigger keeps held replays unlisted, even those held since this statement began. While a replay is held, `unlisted =
# false` means that its player has hidden it.
_UNLISTED = "CASE WHEN replays.held THEN unlisted AND $3::boolean WHEN NOT $3::boolean THEN true END"


async def page(statements: Statements, user_id: str, before: ListPosition | None) -> list[OwnReplay] | None:
    """Up to RECENT_MAX + 1 of the player's replays older than `before`, newest first; None without a player."""
    rows = await statements.run((LIST, user_id, *(before or paging.END)))
    if not rows:
        return None
    return sorted(LIST.values(row for row in rows if row[0] is not None), key=_order, reverse=True)


async def listed_page(statements: Statements, username: str, before: ListPosition | None) -> list[Recent]:
    """Up to RECENT_MAX + 1 of a player's listed replays older than `before`, newest first.

    The list is empty for a suspended player.
    """
    rows = await statements.run((LISTED, username, *(before or paging.END)))
    return sorted(LISTED.values(rows), key=_order, reverse=True)


# This statement and `set_listed` lock the player's row first, like all statements that write a player's rows. Without
# that row they return nothing. A null id matches no replay.
@maybe(
    """
    WITH player AS (
        SELECT id FROM users WHERE id = $1::uuid FOR NO KEY UPDATE
    ), deleted AS (
        DELETE FROM replays USING player WHERE replays.id = $2::uuid AND user_id = player.id
        RETURNING unlisted IS NULL AS listed
    )
    SELECT deleted.listed IS NOT NULL AS existed, coalesce(deleted.listed, false) AS was_listed
    FROM player LEFT JOIN deleted ON true
    """,
    row=Deleted,
)
async def delete(user_id: str, replay_id: str | None) -> Deleted | None:
    """Delete a replay of the player, which frees its part of the quota; None without a player."""


@maybe(
    f"""
    WITH player AS (
        SELECT id FROM users WHERE id = $1::uuid FOR NO KEY UPDATE
    ), found AS (
        SELECT replays.id, held FROM replays JOIN player ON user_id = player.id WHERE replays.id = $2::uuid
    ), changed AS (
        UPDATE replays SET unlisted = {_UNLISTED}
        FROM found
        WHERE replays.id = found.id AND unlisted IS DISTINCT FROM {_UNLISTED}
        RETURNING replays.id, replays.held
    )
    SELECT found.id IS NOT NULL AS exists, $3::boolean AND coalesce(changed.held, found.held, false) AS held,
        changed.id IS NOT NULL AS changed
    FROM player LEFT JOIN found ON true LEFT JOIN changed ON true
    """,  # noqa: S608
    row=ListedOrHeld,
)
async def set_listed(user_id: str, replay_id: str | None, listed: bool) -> ListedOrHeld | None:
    """List a replay of the player unless it is held, or unlist it; None without a player."""
