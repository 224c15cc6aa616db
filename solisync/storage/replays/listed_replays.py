"""Lists of replays for operators: docs/moderation.md "Recipes"."""

from dataclasses import dataclass, field
from datetime import datetime

from ...klondike import Proved, in_words
from ...postgres.declared import many
from ...postgres.statement import Query
from ...postgres.transaction import Statements
from ...rules.leaderboard import ENTRIES
from ...rules.queries import ListPosition
from ..paging import END
from ..players.leaderboard import claim_of
from ..rows import converted
from .replays import IS_LISTED
from .verdicts import read_proved

AMONG = 4_000  # only the newest replays, of all players or of one, are searched


@dataclass(frozen=True, slots=True)
class FoundReplay:
    """A replay with its verdict; `held` means that an operator keeps it unlisted.

    `finding`, made from `proved`, says in words how a refuted or undecided replay differs from its claim.
    """

    id: str
    username: str
    received_at: datetime
    mode: str
    draw_mode: str
    deal: str | None
    final_score: str
    time_seconds: str
    verdict: str
    reason: str | None
    listed: bool
    held: bool
    proved: Proved | None
    finding: str | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "finding", in_words(self.final_score, self.proved))


@dataclass(frozen=True, slots=True)
class UnprovedEntry:
    """A leaderboard entry whose best score no replay proves, with the newest replay that claims it.

    `id` names this score of this player. `seen_by` is the admin who has marked it as seen.
    """

    id: str
    user_id: str
    username: str
    display_name: str
    best_score: int
    recorded_at: datetime
    replay_id: str | None
    verdict: str | None
    proved: Proved | None
    seen_by: str | None
    finding: str | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "finding", in_words(str(self.best_score), self.proved))


@dataclass(frozen=True, slots=True)
class SameGame:
    """A replay of another player with the same deal and the same moves."""

    replay_id: str
    username: str
    received_at: datetime


# Verdicts are looked up one by one, because PostgreSQL joins a subquery with a LIMIT in no other way. So it reads only
# the verdicts of the replays that are searched.
_SHOWN = f"""
    SELECT replays.id, username, replays.received_at, mode, draw_mode, seed AS deal, final_score, time_seconds,
        coalesce(status, 'pending') AS verdict, reason,
        {IS_LISTED} AS listed,
        coalesce(held, false) AS held, proved
    FROM (
        SELECT * FROM replays WHERE {{}} ORDER BY {{}} LIMIT {AMONG}
    ) AS replays
    LEFT JOIN LATERAL (
        SELECT status, reason, proved FROM verdicts WHERE verdicts.replay_id = replays.id LIMIT 1
    ) AS verdict ON true
    JOIN users ON users.id = replays.user_id
    WHERE ($1::text IS NULL OR coalesce(status, 'pending') = $1::text) AND (NOT $2::boolean OR held) {{}}
    ORDER BY replays.received_at DESC, replays.id DESC LIMIT $3::int
"""  # noqa: S608

_ALL = ("(received_at, id) < ($4::timestamptz, $5::uuid)", "received_at DESC, id DESC")
# The comparisons fit the index of one player's replays alone, as in own_replays.
_OF_PLAYER = (
    "(user_id, received_at, id) < ($6::uuid, $4::timestamptz, $5::uuid) AND user_id >= $6::uuid",
    "user_id DESC, received_at DESC, id DESC",
)
_ROW = converted(FoundReplay, proved=read_proved)
_UNSEEN = "AND NOT EXISTS (SELECT FROM review_seen WHERE kind = 'replays' AND item = replays.id::text)"
NEWEST = Query("admin_newest_replays", _SHOWN.format(*_ALL, ""), prepared=False, row=_ROW)
UNSEEN = Query("admin_unseen_replays", _SHOWN.format(*_ALL, _UNSEEN), prepared=False, row=_ROW)
OF_PLAYER = Query("admin_replays_of_player", _SHOWN.format(*_OF_PLAYER, ""), prepared=False, row=_ROW)

_END = f"""
    SELECT received_at AS time, id FROM replays
    WHERE {{}} AND $1::text IS NULL AND $2::boolean IS NULL AND $3::int IS NULL
    ORDER BY {{}} LIMIT 1 OFFSET {AMONG - 1}
"""  # noqa: S608
END_OF_NEWEST = Query("admin_end_of_newest_replays", _END.format(*_ALL), prepared=False, row=ListPosition)
END_OF_PLAYER = Query("admin_end_of_replays_of_player", _END.format(*_OF_PLAYER), prepared=False, row=ListPosition)


async def page(
    statements: Statements,
    *,
    most: int,
    user_id: str | None = None,
    verdict: str | None = None,
    held: bool = False,
    before: ListPosition | None = None,
    seen: bool = True,
) -> list[FoundReplay]:
    """Up to `most` replays older than `before`, newest first; optionally of one player, with one verdict, or `held`.

    Only the newest AMONG of the older replays are searched. Without `seen`, those of all players that an admin has
    marked as seen are left out.
    """
    wanted = (verdict, held, most, *(before or END))
    if user_id is None:
        return await statements.many(NEWEST if seen else UNSEEN, *wanted)
    return await statements.many(OF_PLAYER, *wanted, user_id)


async def end_of_page(
    statements: Statements, *, user_id: str | None = None, before: ListPosition | None = None
) -> ListPosition | None:
    """The last replay that `page` searches; None if there are fewer than AMONG."""
    place = (None, None, None, *(before or END))
    if user_id is None:
        return await statements.maybe(END_OF_NEWEST, *place)
    return await statements.maybe(END_OF_PLAYER, *place, user_id)


@many(
    f"""
    SELECT users.id || '.' || best_score AS id, users.id AS user_id, username, display_name, best_score, recorded_at,
        claim.id AS replay_id, claim.verdict, claim.proved, review_seen.admin AS seen_by
    FROM (
        SELECT * FROM leaderboard WHERE visible
        ORDER BY best_score DESC NULLS LAST, best_time_secs ASC NULLS LAST, recorded_at, user_id LIMIT {ENTRIES}
    ) AS entry
    JOIN users ON users.id = entry.user_id
    LEFT JOIN LATERAL (
        {claim_of("entry")}
    ) AS claim ON true
    LEFT JOIN review_seen ON kind = 'entries' AND item = users.id || '.' || best_score
    WHERE best_score IS NOT NULL AND ($1::boolean OR item IS NULL) AND NOT EXISTS (
        SELECT FROM board_evidence
        WHERE board_evidence.user_id = entry.user_id AND board = 'own' AND deficit = -best_score
    )
    ORDER BY recorded_at DESC
    """,  # noqa: S608
    prepared=False,
    row=converted(UnprovedEntry, proved=read_proved),
)
async def unproved(seen: bool = True) -> list[UnprovedEntry]:
    """The entries among the first ENTRIES of the leaderboard whose best score no replay proves, newest first.

    Without `seen`, those that an admin has marked as seen are left out.
    """


# The order of the board finds replays with the same score.
@many(
    """
    SELECT other.replay_id, username, other.received_at
    FROM verdicts JOIN replays ON replays.id = verdicts.replay_id
    JOIN board_evidence AS other ON board = 'deal/' || seed || '/' || draw_mode AND ranked AND deficit = -score
        AND other.user_id <> replays.user_id
    JOIN verdicts AS judged ON judged.replay_id = other.replay_id
        AND judged.timeline_digest = verdicts.timeline_digest
    JOIN users ON users.id = other.user_id
    WHERE verdicts.replay_id = $1::uuid
    ORDER BY other.received_at, other.replay_id LIMIT 50
    """,
    prepared=False,
    row=SameGame,
)
async def same_game(replay_id: str) -> list[SameGame]:
    """Other players' replays on the board of the same deal with the same moves, oldest first."""
