"""Lists of players for commands: docs/administration.md "Players"."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from ..postgres.declared import many
from ..postgres.statement import Query
from ..postgres.transaction import Statements
from . import paging


@dataclass(frozen=True, slots=True)
class ListedPlayer:
    """A line in the list of players; `avatar` is its extension, `bytes` what replays and avatar take.

    `used_at` is when one of the live sessions was last begun or refreshed.
    """

    id: str
    username: str
    created_at: datetime
    avatar: str | None
    used_at: datetime | None
    bytes: int


# In a username no character comes after "~". A player who was never counted for the quota has no row in replay_usage.
_CHOSEN = "username >= $2::text AND username < $2::text || '~' AND created_at >= $3::timestamptz"
_USED = "max(coalesce(used_at, expires_at - interval '30 days'))"
_COUNTED = "(SELECT coalesce(sum(replay_charge(size)), 0)::bigint FROM replays WHERE user_id = users.id)"

# Looks up sessions and sizes of the players of one page alone.
LIST = Query(
    "list_players",
    f"""
    SELECT id, username, created_at, avatar_extension AS avatar,
        (SELECT {_USED} FROM refresh_tokens WHERE user_id = users.id AND expires_at > clock_timestamp()) AS used_at,
        coalesce((SELECT used_bytes FROM replay_usage WHERE user_id = users.id), {_COUNTED})
            + coalesce((SELECT octet_length(image) FROM avatars WHERE user_id = users.id), 0) AS bytes
    FROM users WHERE username > $1::text AND {_CHOSEN}
    ORDER BY username LIMIT $4::int
    """,  # noqa: S608
    prepared=False,
    row=ListedPlayer,
)


def by_name(
    statements: Statements, *, prefix: str, since: datetime, size: int = paging.PAGE
) -> AsyncIterator[list[ListedPlayer]]:
    """The players who registered at `since` or later, whose names begin with `prefix`, by name, in pages of `size`."""

    async def read(after: ListedPlayer | None) -> list[ListedPlayer]:
        name = after.username if after else ""
        return await statements.many(LIST, name, prefix, since, size)

    return paging.pages(read, size)


# Reads each table once, without images and bodies, and keeps no more rows than the limit.
@many(
    f"""
    SELECT id, username, created_at, avatar, used_at, bytes FROM (
        SELECT users.id, username, created_at, avatar_extension AS avatar, sessions.used_at,
            coalesce(used_bytes, {_COUNTED}) + coalesce(octet_length(image), 0) AS bytes
        FROM users
        LEFT JOIN (
            SELECT user_id, {_USED} AS used_at FROM refresh_tokens WHERE expires_at > clock_timestamp() GROUP BY 1
        ) AS sessions ON sessions.user_id = users.id
        LEFT JOIN replay_usage ON replay_usage.user_id = users.id
        LEFT JOIN avatars ON avatars.user_id = users.id
        WHERE {_CHOSEN}
    ) AS listed
    ORDER BY CASE $1::text WHEN 'registered' THEN created_at WHEN 'used' THEN used_at END DESC NULLS LAST,
        CASE $1::text WHEN 'bytes' THEN bytes END DESC NULLS LAST, username
    LIMIT $4::int
    """,  # noqa: S608
    prepared=False,
    row=ListedPlayer,
)
async def by(order: str, *, prefix: str, since: datetime, most: int) -> list[ListedPlayer]:
    """The first of those players by "registered" (newest first), "used" (last first) or "bytes" (most first)."""
