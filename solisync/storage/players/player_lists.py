"""Lists of players for operators in several orders, also of those in one state: docs/console.md "Lists".

Without a state, each order has an index. The orders "newest" and "last_used" have pages; players without a session come
last in the latter. The orders "replays" and "bytes" have only the first players. A list of one state sorts the MEMBERS
that came into the state last.
"""

from typing import Literal, NamedTuple

from ...postgres.declared import maybe
from ...postgres.statement import Query
from ...postgres.transaction import Statements
from ..paging import END, LAST_ID
from ..rows import nested
from .players import FOUND, FOUND_COLUMNS, FoundPlayer

Order = Literal["newest", "last_used", "replays", "bytes"]
State = Literal["guests", "suspended", "locked"]

MEMBERS = 2_000
SCANNED = 2_000  # players that one page reads to find those without a session
WITHOUT = -1  # the key of players without a value


class PlayerPlace(NamedTuple):
    """A place in a list: the key of a player in the order (microseconds, a number, or WITHOUT), and the player's id."""

    key: int
    id: str

    def __str__(self) -> str:
        return f"{self.key}.{self.id}"


class PlayersPage(NamedTuple):
    """A page of players, those with the greatest value first, and the place of the next page, if any.

    `more` is whether more players are in the state than the list has.
    """

    players: list[FoundPlayer]
    next: PlayerPlace | None
    more: bool = False


class _Ranked(NamedTuple):
    key: int
    more: bool
    player: FoundPlayer


START = PlayerPlace(int(END.time.timestamp()) * 1_000_000, LAST_ID)

_TIME = "timestamptz 'epoch' + $1::bigint * interval '1 microsecond'"
_LIVE = "expires_at > clock_timestamp()"


def _microseconds(time: str) -> str:
    return f"(extract(epoch FROM {time}) * 1000000)::bigint"


def _query(name: str, found: str, more: str = "false AS more") -> Query[_Ranked]:
    """The query for the players in `found`, at most $3 after the place ($1, $2)."""
    return Query(
        f"admin_players_{name}",
        f"""
        WITH found AS MATERIALIZED ({found})
        SELECT key, {more}, {FOUND_COLUMNS} {FOUND} ORDER BY key DESC, users.id DESC
        """,
        prepared=False,
        row=nested(_Ranked, lambda key: key, lambda more: more, FoundPlayer),
    )


# A session is prolonged when it is used, so the end of the latest session orders players by their last use.
_KEYS = {
    "newest": _microseconds("created_at"),
    "last_used": f"""(
        SELECT {_microseconds("max(expires_at)")} FROM refresh_tokens WHERE user_id = users.id AND {_LIVE}
    )""",  # noqa: S608
    "replays": "(SELECT replays FROM replay_usage WHERE user_id = users.id)",
    "bytes": "(SELECT used_bytes FROM replay_usage WHERE user_id = users.id)",
}

_PAGED = {
    "newest": _query(
        "newest",
        f"""
        SELECT id, {_KEYS["newest"]} AS key FROM users
        WHERE (created_at, id) < ({_TIME}, $2::uuid) ORDER BY created_at DESC, id DESC LIMIT $3::int
        """,  # noqa: S608
    ),
    "last_used": _query(
        "last_used",
        f"""
        SELECT user_id AS id, {_microseconds("expires_at")} AS key FROM refresh_tokens AS latest
        WHERE {_LIVE} AND expires_at <= {_TIME} AND (expires_at, user_id) < ({_TIME}, $2::uuid) AND NOT EXISTS (
            SELECT FROM refresh_tokens AS later
            WHERE later.user_id = latest.user_id AND (later.expires_at, later.jti) > (latest.expires_at, latest.jti)
        )
        ORDER BY expires_at DESC, user_id DESC LIMIT $3::int
        """,  # noqa: S608
    ),
}
_UNUSED = _query(
    "unused",
    f"""
    SELECT id, {WITHOUT}::bigint AS key FROM (
        SELECT id FROM users WHERE $1::bigint = {WITHOUT} AND id < $2::uuid ORDER BY id DESC LIMIT {SCANNED}
    ) AS users WHERE {_KEYS["last_used"]} IS NULL LIMIT $3::int
    """,  # noqa: S608
)


@maybe(
    f"SELECT id FROM users WHERE id < $1::uuid ORDER BY id DESC LIMIT 1 OFFSET {SCANNED - 1}",  # noqa: S608
    prepared=False,
    row=str,
)
async def end_of_ids(last: str) -> str | None:
    """The last of SCANNED players before this id; None if there are fewer."""


def _first(order: str, column: str) -> Query[_Ranked]:
    """The query for the first players; the index of `replays` has only rows with a number."""
    found = f"""
        SELECT user_id AS id, {column}::bigint AS key FROM replay_usage
        WHERE {column} IS NOT NULL AND ({column}, user_id) < ($1::bigint, $2::uuid)
        ORDER BY {column} DESC, user_id DESC LIMIT $3::int
    """  # noqa: S608
    return _query(order, found)


_FIRST = {"replays": _first("replays", "replays"), "bytes": _first("bytes", "used_bytes")}

# The members of each state, those that came into it last first.
_STATES = {
    "guests": "SELECT id FROM users WHERE guest AND {asked} ORDER BY created_at DESC",
    "suspended": "SELECT user_id AS id FROM suspensions WHERE {asked} ORDER BY since DESC",
    "locked": "SELECT user_id AS id FROM profile_locks WHERE {asked} ORDER BY since DESC",
}
_MEMBERS = " UNION ALL ".join(
    f"({latest} LIMIT {MEMBERS + 1})".format(asked=f"$4::text = '{state}'") for state, latest in _STATES.items()
)


def _sorted(order: str) -> Query[_Ranked]:
    """The query for players in the state $4, all of whose members it sorts."""
    found = f"""
        SELECT id, key, more FROM (
            SELECT users.id, coalesce({_KEYS[order]}, {WITHOUT}) AS key, count(*) OVER () > {MEMBERS} AS more
            FROM ({_MEMBERS}) AS members JOIN users USING (id)
        ) AS ranked
        WHERE (key, id) < ($1::bigint, $2::uuid) ORDER BY key DESC, id DESC LIMIT $3::int
    """  # noqa: S608
    return _query(f"sorted_{order}", found, "more")


_SORTED = {order: _sorted(order) for order in _KEYS}


async def page(
    statements: Statements, order: Order, state: State | None, *, most: int, after: PlayerPlace = START
) -> PlayersPage:
    """Up to `most` players after a place; of "replays" and "bytes" without a state, there is only one page."""
    if state is not None:
        found = await statements.many(_SORTED[order], *after, most + 1, state)
        return _cut(found, most, None)
    if order in _FIRST:
        return _cut(await statements.many(_FIRST[order], *START, most), most, None)
    found, end = [], None
    if after.key != WITHOUT:
        found = await statements.many(_PAGED[order], *after, most + 1)
        after = PlayerPlace(WITHOUT, LAST_ID)
    if order == "last_used" and len(found) <= most:
        found += await statements.many(_UNUSED, *after, most + 1 - len(found))
        if len(found) <= most:
            last = await end_of_ids(statements, after.id)
            end = None if last is None else PlayerPlace(WITHOUT, last)
    return _cut(found, most, end)


def _cut(found: list[_Ranked], most: int, end: PlayerPlace | None) -> PlayersPage:
    if len(found) > most:
        end = PlayerPlace(found[most - 1].key, found[most - 1].player.id)
    return PlayersPage([each.player for each in found[:most]], end, any(each.more for each in found))
