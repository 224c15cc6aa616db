"""What operators ask and do beside the service. None of it is prepared on the service's connections."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction
from ..rules.analytics import name_of
from . import accounts
from .rows import maybe, one


@dataclass(frozen=True, slots=True)
class Player:
    """Whom an operator means."""

    id: str
    username: str


@dataclass(frozen=True, slots=True)
class Summary:
    """All there is about a player, but for the contents; `payload` is what they pushed."""

    created_at: datetime
    avatar: str | None
    avatar_bytes: int | None
    sessions: int
    replays: int
    replay_bytes: int
    payload: str | None
    display_name: str | None
    best_score: int | None
    best_time_secs: int | None
    recorded_at: datetime | None
    visible: bool | None


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is of everything."""

    players: int
    sessions: int
    progress: int
    leaderboard_visible: int
    leaderboard_hidden: int
    replays: int
    avatars: int
    analytics_events: int


FIND = Statement(
    "admin_find_player",
    "SELECT id, username FROM users WHERE id = $1::uuid OR username = $2::text",
)

SUMMARY = Statement(
    "admin_player",
    """
    SELECT created_at, avatar_extension,
        (SELECT octet_length(image) FROM avatars WHERE user_id = users.id),
        (SELECT count(*) FROM refresh_tokens WHERE user_id = users.id AND expires_at > clock_timestamp()),
        (SELECT count(*) FROM replays WHERE user_id = users.id),
        (SELECT coalesce(sum(size), 0)::bigint FROM replays WHERE user_id = users.id),
        payload, display_name, best_score, best_time_secs, recorded_at, visible
    FROM users
    LEFT JOIN sync_states ON sync_states.user_id = users.id
    LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    WHERE users.id = $1::uuid
    """,
)

SESSIONS = Statement(
    "admin_sessions",
    """
    SELECT expires_at FROM refresh_tokens WHERE user_id = $1::uuid AND expires_at > clock_timestamp()
    ORDER BY expires_at
    """,
)

IMAGE = Statement("admin_avatar", "SELECT image FROM avatars WHERE user_id = $1::uuid")

LOCK_NAME = Statement("admin_lock_player", "SELECT username FROM users WHERE id = $1::uuid FOR UPDATE")
RENAME = Statement("admin_rename", "UPDATE users SET username = $2::text WHERE id = $1::uuid")

# The row keeps its number, and so the events keep their name. Where events have the new name already, that row stays,
# and those of the old name become nameless: telling them all of another number would mean to rewrite them.
RENAME_EVENTS = Statement(
    "admin_rename_events",
    """
    WITH former AS (
        DELETE FROM analytics_names WHERE name = $1::text RETURNING id, seen_on
    )
    INSERT INTO analytics_names AS known (id, name, seen_on) OVERRIDING SYSTEM VALUE
    SELECT id, $2::text, seen_on FROM former
    ON CONFLICT (name) DO UPDATE SET seen_on = greatest(known.seen_on, excluded.seen_on)
    """,
)

REVOKE = Statement("admin_revoke", "DELETE FROM refresh_tokens WHERE user_id = $1::uuid RETURNING true")

# Everybody who inserts a refresh token holds or wants a lock of a player's row. This waits for those who hold one, and
# keeps out the others; what reads goes on.
LOCK_EVERYONE = Statement("admin_lock_everyone", "LOCK TABLE users IN EXCLUSIVE MODE")
REVOKE_EVERYONE = Statement("admin_revoke_everyone", "DELETE FROM refresh_tokens RETURNING true")

SHOW_ENTRY = Statement(
    "admin_show_entry",
    "UPDATE leaderboard SET visible = $2::boolean WHERE user_id = $1::uuid RETURNING display_name",
)

# Without a lock of the players' rows: this takes no other lock, so whoever has one of theirs only waits for its end.
DELETE_REPLAYS = Statement(
    "admin_delete_replays", "DELETE FROM replays WHERE id = ANY ($1::text[]::uuid[]) RETURNING id::text"
)

COUNTS = Statement(
    "admin_counts",
    """
    SELECT (SELECT count(*) FROM users),
        (SELECT count(*) FROM refresh_tokens WHERE expires_at > clock_timestamp()),
        (SELECT count(*) FROM sync_states),
        (SELECT count(*) FROM leaderboard WHERE visible),
        (SELECT count(*) FROM leaderboard WHERE NOT visible),
        (SELECT count(*) FROM replays),
        (SELECT count(*) FROM avatars),
        (SELECT count(*) FROM analytics_events)
    """,
)


async def find(transaction: Transaction, user_id: str | None, username: str | None) -> Player | None:
    """The player of this id or of this name."""
    return maybe(Player, await transaction.run(FIND, user_id, username))


async def summary(transaction: Transaction, user_id: str) -> Summary | None:
    """What there is about a player; None when they are gone."""
    return maybe(Summary, await transaction.run(SUMMARY, user_id))


async def sessions(transaction: Transaction, user_id: str) -> list[datetime]:
    """When the player's refresh tokens expire."""
    return [expires for (expires,) in await transaction.run(SESSIONS, user_id)]


async def image(transaction: Transaction, user_id: str) -> bytes | None:
    """The player's avatar."""
    return maybe(bytes, await transaction.run(IMAGE, user_id))


async def rename(transaction: Transaction, user_id: str, username: str) -> str | None:
    """Give a player another name, and the events that name them as well; the old name, or None when they are gone.

    Fails with a DatabaseError when the name is taken. Needs a transaction.
    """
    former = maybe(str, await transaction.run(LOCK_NAME, user_id))
    if former is not None and former != username:
        await transaction.run_all((RENAME, user_id, username), (RENAME_EVENTS, name_of(former), name_of(username)))
    return former


async def revoke(transaction: Transaction, user_id: str) -> int:
    """Delete a player's refresh tokens; returns how many. Needs a transaction.

    Two statements on purpose: the lock waits for a refresh in flight, and the second statement then sees its token.
    """
    return len(await transaction.run_all((accounts.LOCK, user_id), (REVOKE, user_id)))


async def revoke_everyone(transaction: Transaction) -> int:
    """Delete all refresh tokens, also those of refreshes in flight; returns how many. Needs a transaction.

    A refresh that waits for this lock finds its token gone.
    """
    return len(await transaction.run_all((LOCK_EVERYONE,), (REVOKE_EVERYONE,)))


async def set_visible(transaction: Transaction, user_id: str, visible: bool) -> str | None:
    """Show or hide a player's entry on the leaderboard; its display name, or None when there is none."""
    return maybe(str, await transaction.run(SHOW_ENTRY, user_id, visible))


async def delete_replays(transaction: Transaction, ids: Sequence[str]) -> set[str]:
    """Delete these replays; returns the ids of those that existed."""
    return {replay_id for (replay_id,) in await transaction.run(DELETE_REPLAYS, list(ids))}


async def counts(transaction: Transaction) -> Counts:
    """How much there is of everything."""
    return one(Counts, await transaction.run(COUNTS))
