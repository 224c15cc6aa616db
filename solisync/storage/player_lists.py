"""Lists of players for operators in several orders, also of those in one state: docs/console.md "Lists".

Each order has an index, from which a page reads the next players. Players without a value in that order, such as those
without a session, come last. A page of players in one state sorts all of them if they are at most SCANNED; otherwise it
reads up to SCANNED players in the order, and leaves the others out.
"""

from typing import Literal, NamedTuple

from ..postgres.declared import maybe, one
from ..postgres.statement import Query
from ..postgres.transaction import Statements
from .paging import END, LAST_ID
from .players import FOUND, FOUND_COLUMNS, FoundPlayer
from .rows import nested

Order = Literal["newest", "last_used", "replays", "bytes"]
State = Literal["guests", "suspended", "locked"]

SCANNED = 2_000
WITHOUT = -1  # the key of players without a value


class PlayerPlace(NamedTuple):
    """A place in a list: the key of a player in the order (microseconds, a number, or WITHOUT), and the player's id."""

    key: int
    id: str

    def __str__(self) -> str:
        return f"{self.key}.{self.id}"


class _Ranked(NamedTuple):
    key: int
    player: FoundPlayer


START = PlayerPlace(int(END.time.timestamp()) * 1_000_000, LAST_ID)

_TIME = "timestamptz 'epoch' + $1::bigint * interval '1 microsecond'"
_LIVE = "expires_at > clock_timestamp()"


def _microseconds(time: str) -> str:
    return f"(extract(epoch FROM {time}) * 1000000)::bigint"


# A session is prolonged when it is used, so the end of the latest session orders players by their last use.
_SCANS = {
    "newest": f"""
        SELECT id, {_microseconds("created_at")} AS key FROM users
        WHERE (created_at, id) < ({_TIME}, $2::uuid) ORDER BY created_at DESC, id DESC
    """,  # noqa: S608
    "last_used": f"""
        SELECT user_id AS id, {_microseconds("expires_at")} AS key FROM refresh_tokens AS latest
        WHERE {_LIVE} AND expires_at <= {_TIME} AND (expires_at, user_id) < ({_TIME}, $2::uuid) AND NOT EXISTS (
            SELECT FROM refresh_tokens AS later
            WHERE later.user_id = latest.user_id AND (later.expires_at, later.jti) > (latest.expires_at, latest.jti)
        )
        ORDER BY expires_at DESC, user_id DESC
    """,  # noqa: S608
    "replays": """
        SELECT user_id AS id, replays::bigint AS key FROM replay_usage
        WHERE replays IS NOT NULL AND (replays, user_id) < ($1::bigint, $2::uuid) ORDER BY replays DESC, user_id DESC
    """,
    "bytes": """
        SELECT user_id AS id, used_bytes AS key FROM replay_usage
        WHERE (used_bytes, user_id) < ($1::bigint, $2::uuid) ORDER BY used_bytes DESC, user_id DESC
    """,
}
_KEYS = {
    "newest": _microseconds("created_at"),
    "last_used": f"""(
        SELECT {_microseconds("max(expires_at)")} FROM refresh_tokens WHERE user_id = users.id AND {_LIVE}
    )""",  # noqa: S608
    "replays": "(SELECT replays FROM replay_usage WHERE user_id = users.id)",
    "bytes": "(SELECT used_bytes FROM replay_usage WHERE user_id = users.id)",
}
_STATES = {
    "guests": "SELECT id FROM users WHERE guest",
    "suspended": "SELECT user_id AS id FROM suspensions",
    "locked": "SELECT user_id AS id FROM profile_locks",
}
# A CASE, because a join has no order. The LIMIT makes the planner look up each player, instead of reading all players
# of the state into a hash table.
_IN_STATE = " ".join(
    f"WHEN '{state}' THEN (SELECT true FROM ({players}) AS present WHERE present.id = scanned.id LIMIT 1)"  # noqa: S608
    for state, players in _STATES.items()
)


def _without(order: str) -> str:
    """SQL for players without a value in this order, by their ids."""
    return f"""
        SELECT id, {WITHOUT}::bigint AS key FROM (
            SELECT id FROM users WHERE $1::bigint = {WITHOUT} AND id < $2::uuid ORDER BY id DESC LIMIT {SCANNED}
        ) AS users WHERE {_KEYS[order]} IS NULL
    """  # noqa: S608


def _query(name: str, found: str) -> Query[_Ranked]:
    return Query(
        f"admin_players_{name}",
        f"WITH found AS MATERIALIZED ({found}) SELECT key, {FOUND_COLUMNS} {FOUND} ORDER BY key DESC, users.id DESC",
        prepared=False,
        row=nested(_Ranked, lambda key: key, FoundPlayer),
    )


def _scan(name: str, scan: str) -> Query[_Ranked]:
    """The query for up to $3 players after the place ($1, $2), or only those in the state $4."""
    found = f"""
        SELECT id, key FROM ({scan} LIMIT {SCANNED}) AS scanned
        WHERE CASE $4::text {_IN_STATE} ELSE true END LIMIT $3::int
    """  # noqa: S608
    return _query(name, found)


def _sort(order: str) -> Query[_Ranked]:
    """The query for up to $3 of the players in the state $4, all of which it sorts, after the place ($1, $2)."""
    members = " UNION ALL ".join(
        f"SELECT id FROM ({each}) AS present WHERE $4::text = '{state}'"  # noqa: S608
        for state, each in _STATES.items()
    )
    found = f"""
        SELECT id, key FROM (
            SELECT users.id, coalesce({_KEYS[order]}, {WITHOUT}) AS key
            FROM ({members}) AS members JOIN users USING (id)
        ) AS ranked
        WHERE (key, id) < ($1::bigint, $2::uuid) ORDER BY key DESC, id DESC LIMIT $3::int
    """  # noqa: S608
    return _query(f"sorted_{order}", found)


def _end(name: str, scan: str) -> Query[PlayerPlace]:
    """The query for the last player that a scan reads, unless it ends before SCANNED."""
    end = f"SELECT key, id FROM ({scan} LIMIT {SCANNED}) AS scanned OFFSET {SCANNED - 1}"  # noqa: S608
    return Query(f"admin_players_end_of_{name}", end, prepared=False, row=PlayerPlace)


NEWEST, LAST_USED, REPLAYS, BYTES = (_scan(order, scan) for order, scan in _SCANS.items())
UNUSED, UNCOUNTED, UNCHARGED = (_scan(f"without_{order}", _without(order)) for order in [*_SCANS][1:])
SORTED_NEWEST, SORTED_LAST_USED, SORTED_REPLAYS, SORTED_BYTES = map(_sort, _SCANS)
END_OF_NEWEST, END_OF_LAST_USED, END_OF_REPLAYS, END_OF_BYTES = (_end(order, scan) for order, scan in _SCANS.items())

_WITH = {"newest": NEWEST, "last_used": LAST_USED, "replays": REPLAYS, "bytes": BYTES}
_ENDS = {"newest": END_OF_NEWEST, "last_used": END_OF_LAST_USED, "replays": END_OF_REPLAYS, "bytes": END_OF_BYTES}
_WITHOUT = {"last_used": UNUSED, "replays": UNCOUNTED, "bytes": UNCHARGED}
_SORTS = {"newest": SORTED_NEWEST, "last_used": SORTED_LAST_USED, "replays": SORTED_REPLAYS, "bytes": SORTED_BYTES}


@one(
    f"""
    SELECT (SELECT count(*) FROM (
        {" UNION ALL ".join(f"SELECT FROM ({each}) AS x WHERE $1::text = '{state}'" for state, each in _STATES.items())}
        LIMIT {SCANNED + 1}
    ) AS members) <= {SCANNED}
    """,  # noqa: S608
    prepared=False,
    row=bool,
)
async def few(state: str) -> bool:
    """Return whether so few players are in this state that a page can sort all of them."""


@maybe(
    f"""
    SELECT id FROM users WHERE id < $1::uuid ORDER BY id DESC LIMIT 1 OFFSET {SCANNED - 1}
    """,  # noqa: S608
    prepared=False,
    row=str,
)
async def end_of_ids(last: str) -> str | None:
    """The last of SCANNED players before this id; None if there are fewer."""


async def page(
    statements: Statements, order: Order, state: State | None, *, most: int, after: PlayerPlace = START
) -> tuple[list[FoundPlayer], PlayerPlace | None]:
    """Up to `most` players after a place, those with the greatest value first, and the place of the next page, if any.

    With a `state`, a page may have few players although there is a next one.
    """
    if state is not None and await few(statements, state):
        return _cut(await statements.many(_SORTS[order], *after, most + 1, state), most, None)
    found: list[_Ranked] = []
    end: PlayerPlace | None = None
    if after.key != WITHOUT:
        found = await statements.many(_WITH[order], *after, most + 1, state)
        if state is not None and len(found) <= most:
            end = await statements.maybe(_ENDS[order], *after)
        after = PlayerPlace(WITHOUT, LAST_ID)
    if len(found) <= most and end is None and order != "newest":
        found += await statements.many(_WITHOUT[order], *after, most + 1 - len(found), state)
        last = await end_of_ids(statements, after.id) if len(found) <= most else None
        end = None if last is None else PlayerPlace(WITHOUT, last)
    return _cut(found, most, end)


def _cut(found: list[_Ranked], most: int, end: PlayerPlace | None) -> tuple[list[FoundPlayer], PlayerPlace | None]:
    if len(found) > most:
        end = PlayerPlace(found[most - 1].key, found[most - 1].player.id)
    return [each.player for each in found[:most]], end
