"""Players for operators, listed or found by name or by restriction: docs/administration.md "Players"."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from twisted.internet.base import ReactorBase
from twisted.internet.task import deferLater

from ...postgres.declared import many
from ...postgres.statement import Query
from ...postgres.transaction import Statements
from ...rules.shapes import NIL
from .. import paging
from .accounts import SUSPENDED

MOST = 50  # players found
PAGE = 16_000  # names that one statement searches for a part of a name: 40 ms at most
PAUSE = 3  # the pause after a page, in times of its duration: it leaves players most of the processor


@dataclass(frozen=True, slots=True)
class ListedPlayer:
    """A line in the list of players; `avatar` is its extension, `bytes` counts replays and avatar.

    `used_at` is the latest login or refresh of a live session.
    """

    id: str
    username: str
    created_at: datetime
    avatar: str | None
    used_at: datetime | None
    replays: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FoundPlayer:
    """A player, with the name on the leaderboard, and when a suspension or lock began.

    `used_at` is the latest login or refresh of a live session; `bytes` is the space of the replays as the quota counts
    it.
    """

    username: str
    id: str
    created_at: datetime
    display_name: str | None
    suspended_since: datetime | None
    locked_since: datetime | None
    guest: bool
    used_at: datetime | None
    replays: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Page:
    """Up to PAGE searched names: the last of them, and the first players whose names have the part.

    Names on the leaderboard are ordered by the ids of their players, so there `last` is an id.
    """

    last: str | None
    ids: list[str]


# "~" sorts after every character of a username. Players who never had a replay have no row in replay_usage.
_CHOSEN = f"""username >= $2::text AND username < $2::text || '~' AND created_at >= $3::timestamptz
        AND CASE $5::text WHEN 'guests' THEN guest
            WHEN 'suspended' THEN {SUSPENDED}
            WHEN 'locked' THEN EXISTS (SELECT FROM profile_locks WHERE user_id = users.id) ELSE true END"""
# Reads sessions and sizes only for the players of one page.
LIST = Query(
    "list_players",
    f"""
    SELECT id, username, created_at, avatar_extension AS avatar,
        (SELECT max(used_at) FROM refresh_tokens WHERE user_id = id AND expires_at > clock_timestamp()) AS used_at,
        coalesce((SELECT replays FROM replay_usage WHERE user_id = users.id), 0) AS replays,
        coalesce((SELECT used_bytes FROM replay_usage WHERE user_id = users.id), 0)
            + coalesce((SELECT octet_length(image) FROM avatars WHERE user_id = users.id), 0) AS bytes
    FROM users WHERE username > $1::text AND {_CHOSEN}
    ORDER BY username LIMIT $4::int
    """,  # noqa: S608
    prepared=False,
    row=ListedPlayer,
)


def by_name(
    statements: Statements, *, prefix: str, since: datetime, state: str | None = None, size: int = paging.PAGE
) -> AsyncIterator[list[ListedPlayer]]:
    """The players who registered at `since` or later with names that begin with `prefix`, by name, `size` to a page."""

    async def read(after: ListedPlayer | None) -> list[ListedPlayer]:
        name = after.username if after else ""
        return await statements.many(LIST, name, prefix, since, size, state)

    return paging.pages(read, size)


# Reads each table once, without images and bodies, and keeps no more rows than the limit.
@many(
    f"""
    SELECT id, username, created_at, avatar, used_at, replays, bytes FROM (
        SELECT users.id, username, created_at, avatar_extension AS avatar, sessions.used_at,
            coalesce(replays, 0) AS replays,
            coalesce(used_bytes, 0) + coalesce(octet_length(image), 0) AS bytes
        FROM users
        LEFT JOIN (
            SELECT user_id, max(used_at) AS used_at FROM refresh_tokens WHERE expires_at > clock_timestamp() GROUP BY 1
        ) AS sessions ON sessions.user_id = users.id
        LEFT JOIN replay_usage ON replay_usage.user_id = users.id
        LEFT JOIN avatars ON avatars.user_id = users.id
        WHERE {_CHOSEN}
    ) AS listed
    ORDER BY CASE $1::text WHEN 'registered' THEN created_at WHEN 'used' THEN used_at END DESC NULLS LAST,
        CASE $1::text WHEN 'bytes' THEN bytes WHEN 'replays' THEN replays END DESC NULLS LAST, username
    LIMIT $4::int
    """,  # noqa: S608
    prepared=False,
    row=ListedPlayer,
)
async def by(order: str, *, prefix: str, since: datetime, most: int, state: str | None = None) -> list[ListedPlayer]:
    """The first of these players by "registered" (newest first), "used" (last used first), "replays" or "bytes"."""


FOUND_COLUMNS = """
    username, users.id, created_at, display_name, suspensions.since AS suspended_since,
    profile_locks.since AS locked_since, guest IS TRUE AS guest,
    (SELECT max(used_at) FROM refresh_tokens WHERE user_id = users.id AND expires_at > clock_timestamp()) AS used_at,
    coalesce(replays, 0) AS replays,
    coalesce(used_bytes, 0) AS bytes
"""
FOUND = """
    FROM found JOIN users ON users.id = found.id
    LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    LEFT JOIN suspensions ON suspensions.user_id = users.id
    LEFT JOIN profile_locks ON profile_locks.user_id = users.id
    LEFT JOIN replay_usage ON replay_usage.user_id = users.id
"""
_FOUND = f"SELECT {FOUND_COLUMNS} {FOUND}"

# Reads in the order of the index of usernames, which has every column but the ids.
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


# "~" sorts after every character of a username. The comparison of the two columns alone would not use the index.
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
    """Up to `most` players whose usernames begin with `text` in any case, by name, those after `after`."""


@many(
    f"WITH found AS (SELECT unnest($1::text[]::uuid[]) AS id) {_FOUND} ORDER BY lower(username), username",
    prepared=False,
    row=FoundPlayer,
)
async def by_ids(ids: list[str]) -> list[FoundPlayer]:
    """The players with these ids, except those who no longer exist."""


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
    """Up to `most` players with `text` in their usernames, or in their names on the leaderboard, in any case.

    Also returns where the next page begins, if there may be one: after this username or this player's id. The search
    ends after this many `seconds`.
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
