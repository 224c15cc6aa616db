"""The stored data that pages for players show: docs/pages.md "How a page is made"."""

from datetime import date
from operator import attrgetter
from typing import NamedTuple

from msgspec import Raw

from ..postgres.declared import maybe, one
from ..postgres.statement import Query
from ..postgres.transaction import Statements
from ..rules.boards import RANKS
from ..rules.html_pages import DayBoard, PlayerPage, ReplayData, SharedReplay
from ..rules.replay_lists import Recent
from ..rules.replays import VerdictAnswer
from . import paging
from .players.accounts import AVATAR_URL, SUSPENDED
from .replays.own_replays import LISTED
from .replays.replays import IS_LISTED, NUMBERS, RECORDED_AT
from .rows import converted, nested


class _Shown(NamedTuple):
    replay: Recent
    avatar_url: str | None


PLAYER = Query(
    "shared_player",
    f"SELECT listed.*, {AVATAR_URL} AS avatar_url FROM ({LISTED.sql}) AS listed JOIN users USING (username)",  # noqa: S608
    row=nested(_Shown, converted(Recent, **NUMBERS), lambda avatar_url: avatar_url),
)


@maybe(
    f"""
    SELECT replays.id, username, CASE WHEN NOT {SUSPENDED} THEN {AVATAR_URL} END AS avatar_url, seed AS deal,
        replays.draw_mode, replays.mode, replays.time_seconds, replays.final_score, {RECORDED_AT},
        replays.received_at, {IS_LISTED} AS listed,
        coalesce(status, 'pending') AS status, ruleset, undos, score, moves, reason, checked_at
    FROM replays JOIN users ON users.id = replays.user_id LEFT JOIN verdicts ON verdicts.replay_id = replays.id
    WHERE replays.id = $1::uuid
    """,  # noqa: S608
    row=nested(ReplayData, converted(SharedReplay, time_seconds=Raw, final_score=Raw), VerdictAnswer),
)
async def replay(replay_id: str) -> ReplayData | None:
    """A replay and its verdict, without the moves."""


# Counts in the index, up to the last rank that boards show.
@one(
    f"""
    SELECT day, today, players, best
    FROM (
        SELECT coalesce($1::date, today) AS day, today
        FROM (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS today) AS clock
    ) AS days CROSS JOIN LATERAL (
        SELECT count(*) AS players, -min(deficit) AS best FROM (
            SELECT deficit FROM board_evidence WHERE board = 'daily/' || to_char(day, 'YYYY-MM-DD') AND ranked
            ORDER BY deficit, received_at, replay_id LIMIT {RANKS}
        ) AS counted
    ) AS won
    """,  # noqa: S608
    row=DayBoard,
)
async def day_board(day: date | None) -> DayBoard:
    """The state of a day, or of today, and its board."""


async def player(statements: Statements, username: str) -> PlayerPage | None:
    """A player with the newest listed replays; None if there are none."""
    found = await statements.many(PLAYER, username, *paging.END)
    if not found:
        return None
    replays = sorted((shown.replay for shown in found), key=attrgetter("received_at", "id"), reverse=True)
    return PlayerPage(username, found[0].avatar_url, replays)
