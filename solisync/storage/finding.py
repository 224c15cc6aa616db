"""Finding players by their names: docs/administration.md "Players"."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from ..postgres.statement import Query
from ..postgres.transaction import Statements
from ..rules.ids import NIL
from .rows import many, one

MOST = 50  # players found
PAGE = 20_000  # names among which a part is looked for at once: some milliseconds


@dataclass(frozen=True, slots=True)
class FoundPlayer:
    """A player, with the name on the leaderboard and what operators have done."""

    username: str
    id: str
    created_at: datetime
    display_name: str | None
    suspended: bool
    locked: bool


@dataclass(frozen=True, slots=True)
class NamePage:
    """Some names that were looked through, up to `last`, and the players among them who have the part."""

    last: str | None
    players: list[FoundPlayer]


@dataclass(frozen=True, slots=True)
class _Page:
    last: str | None
    ids: list[str]


_FOUND = """
    SELECT username, users.id, created_at, display_name, suspensions.user_id IS NOT NULL AS suspended,
        profile_locks.user_id IS NOT NULL AS locked
    FROM found JOIN users ON users.id = found.id
    LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    LEFT JOIN suspensions ON suspensions.user_id = users.id
    LEFT JOIN profile_locks ON profile_locks.user_id = users.id
    ORDER BY lower(username), username
"""

# In a username no character comes after "~".
BEGINNING = Query(
    "admin_find_beginning",
    f"""
    WITH found AS MATERIALIZED (
        SELECT id FROM users WHERE lower(username) >= lower($1::text) AND lower(username) < lower($1::text) || '~'
        ORDER BY lower(username) LIMIT $2::int
    )
    {_FOUND}
    """,  # noqa: S608
    prepared=False,
    row=FoundPlayer,
)

OF_IDS = Query(
    "admin_find_ids",
    f"WITH found AS (SELECT unnest($1::text[]::uuid[]) AS id) {_FOUND}",
    prepared=False,
    row=FoundPlayer,
)

# In the order of the index of usernames, which has all that is needed but the ids.
USERNAMES = Query(
    "admin_find_in_usernames",
    f"""
    WITH page AS MATERIALIZED (
        SELECT username FROM users WHERE username > $1::text ORDER BY username LIMIT $3::int
    )
    SELECT (SELECT max(username) FROM page) AS last, ARRAY(
        SELECT id::text FROM users WHERE username = ANY (ARRAY(
            SELECT username FROM page WHERE strpos(lower(username), lower($2::text)) > 0
            ORDER BY username LIMIT {MOST + 1}
        ))
    ) AS ids
    """,  # noqa: S608
    prepared=False,
    row=_Page,
)

DISPLAY_NAMES = Query(
    "admin_find_in_display_names",
    f"""
    WITH page AS MATERIALIZED (
        SELECT user_id, display_name FROM leaderboard WHERE user_id > $1::uuid ORDER BY user_id LIMIT $3::int
    )
    SELECT (SELECT user_id::text FROM page ORDER BY user_id DESC LIMIT 1) AS last, ARRAY(
        SELECT user_id::text FROM page WHERE strpos(lower(display_name), lower($2::text)) > 0
        ORDER BY user_id LIMIT {MOST + 1}
    ) AS ids
    """,  # noqa: S608
    prepared=False,
    row=_Page,
)


async def by_beginning(statements: Statements, text: str) -> list[FoundPlayer]:
    """The players whose usernames begin so, whatever the case, by name: up to MOST, and one more if there is."""
    return many(BEGINNING, await statements.run(BEGINNING, text, MOST + 1))


async def by_ids(statements: Statements, ids: list[str]) -> list[FoundPlayer]:
    """Those players of these ids who are there."""
    return many(OF_IDS, await statements.run(OF_IDS, ids))


async def by_part(statements: Statements, text: str, *, display_names: bool) -> AsyncIterator[NamePage]:
    """Look for a part of usernames, or of the names on the leaderboard, whatever the case, page by page to the end."""
    query, last = (DISPLAY_NAMES, NIL) if display_names else (USERNAMES, "")
    while True:
        page = one(query, await statements.run(query, last, text, PAGE))
        yield NamePage(page.last, await by_ids(statements, page.ids) if page.ids else [])
        if page.last is None:
            return
        last = page.last


RESTRICTED = Query(
    "admin_restricted",
    f"""
    WITH found AS (
        SELECT user_id AS id FROM suspensions WHERE $1::text = 'suspended'
        UNION ALL SELECT user_id FROM profile_locks WHERE $1::text = 'locked'
        LIMIT {MOST + 1}
    )
    {_FOUND}
    """,  # noqa: S608
    prepared=False,
    row=FoundPlayer,
)


async def restricted(statements: Statements, state: str) -> list[FoundPlayer]:
    """Players who are "suspended" or "locked", by name: up to MOST, and one more if there is."""
    return many(RESTRICTED, await statements.run(RESTRICTED, state))
