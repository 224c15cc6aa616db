"""Finding players by their names: docs/administration.md "Players"."""

from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from twisted.internet.base import ReactorBase
from twisted.internet.task import deferLater

from ..postgres.declared import many
from ..postgres.statement import Query
from ..postgres.transaction import Statements
from ..rules.ids import NIL
from ..rules.list_position import ListPosition
from . import paging

MOST = 50  # players found
PAGE = 16_000  # names among which a part is looked for at once: 40 ms at most
PAUSE = 3  # a search waits so many times as long as a page took, which leaves players most of the processor


@dataclass(frozen=True, slots=True)
class FoundPlayer:
    """A player, with the name on the leaderboard, and since when operators keep them out, or from changes."""

    username: str
    id: str
    created_at: datetime
    display_name: str | None
    suspended_since: datetime | None
    locked_since: datetime | None


@dataclass(frozen=True, slots=True)
class _Page:
    """Up to PAGE names that were looked through, the last of them, and the first players among them with the part.

    Names on the leaderboard are in the order of the ids of their players, and the last is an id.
    """

    last: str | None
    ids: list[str]


_FOUND = """
    SELECT username, users.id, created_at, display_name, suspensions.since AS suspended_since,
        profile_locks.since AS locked_since
    FROM found JOIN users ON users.id = found.id
    LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    LEFT JOIN suspensions ON suspensions.user_id = users.id
    LEFT JOIN profile_locks ON profile_locks.user_id = users.id
"""

# In the order of the index of usernames, which has all that is needed but the ids.
USERNAMES = Query(
    "admin_find_in_usernames",
    """
    WITH page AS MATERIALIZED (
        SELECT username FROM users WHERE username > $1::text ORDER BY username LIMIT $3::int
    )
    SELECT (SELECT max(username) FROM page) AS last, ARRAY(
        SELECT id::text FROM users WHERE username = ANY (ARRAY(
            SELECT username FROM page WHERE strpos(lower(username), lower($2::text)) > 0
            ORDER BY username LIMIT $4::int
        ))
    ) AS ids
    """,
    prepared=False,
    row=_Page,
)

DISPLAY_NAMES = Query(
    "admin_find_in_display_names",
    """
    WITH page AS MATERIALIZED (
        SELECT user_id, display_name FROM leaderboard WHERE user_id > $1::uuid ORDER BY user_id LIMIT $3::int
    )
    SELECT (SELECT user_id::text FROM page ORDER BY user_id DESC LIMIT 1) AS last, ARRAY(
        SELECT user_id::text FROM page WHERE strpos(lower(display_name), lower($2::text)) > 0
        ORDER BY user_id LIMIT $4::int
    ) AS ids
    """,
    prepared=False,
    row=_Page,
)


# In a username no character comes after "~". The comparison of two columns alone would not lead into the index.
@many(
    f"""
    WITH found AS MATERIALIZED (
        SELECT id FROM users
        WHERE lower(username) >= greatest(lower($1::text), lower($2::text))
            AND lower(username) < lower($1::text) || '~'
            AND (lower(username), username) > (lower($2::text), $2::text)
        ORDER BY lower(username), username LIMIT $3::int
    )
    {_FOUND} ORDER BY lower(username), username
    """,  # noqa: S608
    prepared=False,
    row=FoundPlayer,
)
async def by_beginning(text: str, *, after: str = "", most: int) -> list[FoundPlayer]:
    """Up to `most` players whose usernames begin so, whatever the case, by name; those who come after this name."""


@many(
    f"WITH found AS (SELECT unnest($1::text[]::uuid[]) AS id) {_FOUND} ORDER BY lower(username), username",
    prepared=False,
    row=FoundPlayer,
)
async def by_ids(ids: list[str]) -> list[FoundPlayer]:
    """Those players of these ids who are there."""


async def by_part(
    statements: Statements,
    reactor: ReactorBase,
    text: str,
    *,
    display_names: bool,
    most: int,
    seconds: float,
    after: str | None = None,
) -> tuple[list[FoundPlayer], str | None]:
    """Up to `most` players with a part of the username, or of the name on the leaderboard, whatever the case.

    Also returns where to go on when there may be more: after this username, or id of a player. The search ends after
    so many `seconds`.
    """
    query, last = (DISPLAY_NAMES, after or NIL) if display_names else (USERNAMES, after or "")
    place = attrgetter("id" if display_names else "username")
    found: list[FoundPlayer] = []
    deadline = reactor.seconds() + seconds
    while True:
        began = reactor.seconds()
        page = await statements.one(query, last, text, PAGE, most + 1)
        if page.ids:
            found += sorted(await by_ids(statements, page.ids), key=place)
        if len(found) > most:
            return found[:most], place(found[most - 1])
        now = reactor.seconds()
        if page.last is None or now > deadline:
            return found, page.last
        await deferLater(reactor, PAUSE * (now - began))
        last = page.last


RESTRICTED = Query(
    "admin_restricted",
    f"""
    WITH found AS (
        SELECT id, restricted.since FROM (
            SELECT user_id AS id, since FROM suspensions WHERE $1::text = 'suspended'
            UNION ALL SELECT user_id, since FROM profile_locks WHERE $1::text = 'locked'
        ) AS restricted
        WHERE (since, id) < ($2::timestamptz, $3::uuid) ORDER BY since DESC, id DESC LIMIT $4::int
    )
    {_FOUND} ORDER BY found.since DESC, users.id DESC
    """,  # noqa: S608
    prepared=False,
    row=FoundPlayer,
)


async def restricted(
    statements: Statements, state: str, *, most: int, before: ListPosition | None = None
) -> list[FoundPlayer]:
    """Up to `most` players who are "suspended" or "locked", since before this; the last first."""
    return await statements.many(RESTRICTED, state, *(before or paging.END), most)
