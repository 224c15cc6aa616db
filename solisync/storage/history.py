"""What has happened to accounts, as rows: docs/administration.md "Players"."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..postgres.statement import Query, Statement
from ..postgres.transaction import Statements
from ..process.audit import Happened
from .rows import many


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event that happened `times` times, for the first time so many seconds `ago`."""

    happened: Happened
    ago: float = 0.0
    times: int = 1


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A line of the history of a player."""

    at: datetime
    event: str
    reason: str | None
    client: str | None
    times: int


@dataclass(frozen=True, slots=True)
class Visitor:
    """A player to whom something happened from an address: how often, and when for the last time."""

    id: str
    username: str
    last_at: datetime
    events: int


@dataclass(frozen=True, slots=True)
class ChangedProfile:
    """A player who has changed what others see, and what it is now; `avatar` is its extension."""

    at: datetime
    username: str
    id: str
    display_name: str | None
    visible: bool | None
    avatar: str | None


@dataclass(frozen=True, slots=True)
class RegisteredPlayer:
    """A player who has registered, from which address, and what others see of them now."""

    at: datetime
    username: str
    id: str
    display_name: str | None
    visible: bool | None
    avatar: str | None
    client: str | None


# Players who are deleted meanwhile drop out: rows of `users` are locked as the foreign key would do it, and one that is
# gone fails nothing. In the order of ids, so that two of these can't deadlock; pushes don't wait for them. By the clock
# of the database, which decides how long rows are kept.
STORE = Statement(
    "store_history",
    """
    WITH present AS (
        SELECT id FROM users WHERE id = ANY ($2::text[]::uuid[]) ORDER BY id FOR KEY SHARE
    )
    INSERT INTO account_history (happened_at, user_id, event, reason, client, times)
    SELECT clock_timestamp() - ago * interval '1 second', user_id, event, reason, client, times
    FROM unnest($1::float8[], $2::text[]::uuid[], $3::text[], $4::text[], $5::text[], $6::int[])
        AS happened (ago, user_id, event, reason, client, times)
    WHERE user_id IS NULL OR user_id IN (SELECT id FROM present)
    """,
)

# The oldest rows have the lowest ids, but for seconds. Whatever is too young among the oldest ends the search.
PRUNE = Statement(
    "prune_history",
    """
    DELETE FROM account_history WHERE id IN (
        SELECT id FROM (SELECT id, happened_at FROM account_history ORDER BY id LIMIT $2::int) AS oldest
        WHERE happened_at < clock_timestamp() - make_interval(days => $1::int)
    ) RETURNING true
    """,
)

OF_PLAYER = Query(
    "admin_history",
    """
    SELECT happened_at AS at, event, reason, client, times FROM account_history
    WHERE user_id = $1::uuid ORDER BY id DESC LIMIT $2::int
    """,
    prepared=False,
    row=HistoryLine,
)

OF_CLIENT = Query(
    "admin_players_of_client",
    """
    SELECT users.id, username, last_at, events
    FROM (
        SELECT user_id, max(happened_at) AS last_at, sum(times) AS events FROM account_history
        WHERE client = $1::text AND user_id IS NOT NULL GROUP BY user_id
    ) AS visit JOIN users ON users.id = user_id
    ORDER BY last_at DESC, username LIMIT $2::int
    """,
    prepared=False,
    row=Visitor,
)


LATEST = 100_000  # rows that are read for a list of all players

CHANGED = Query(
    "admin_changed_profiles",
    f"""
    SELECT at, username, users.id, display_name, visible, avatar_extension AS avatar
    FROM (
        SELECT user_id, max(happened_at) AS at, max(id) AS last
        FROM (SELECT id, user_id, event, happened_at FROM account_history ORDER BY id DESC LIMIT {LATEST}) AS latest
        WHERE event = $1::text GROUP BY user_id
    ) AS changed
    JOIN users ON users.id = changed.user_id LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    WHERE CASE $1::text WHEN 'avatar changed' THEN avatar_extension ELSE display_name END IS NOT NULL
    ORDER BY last DESC LIMIT $2::int
    """,  # noqa: S608
    prepared=False,
    row=ChangedProfile,
)


async def store(statements: Statements, occurrences: Sequence[Occurrence]) -> None:
    """Store what happened, but for what happened to players who are gone."""
    happened = [each.happened for each in occurrences]
    await statements.run(
        STORE,
        [each.ago for each in occurrences],
        [each.user_id for each in happened],
        [each.event for each in happened],
        [each.reason for each in happened],
        [each.client for each in happened],
        [each.times for each in occurrences],
    )


async def prune(statements: Statements, *, days: int, most: int) -> int:
    """Delete up to `most` rows that are older than this; returns how many."""
    return len(await statements.run(PRUNE, days, most))


async def of_player(statements: Statements, user_id: str, *, most: int) -> list[HistoryLine]:
    """The latest of what happened to a player, the last first."""
    return many(OF_PLAYER, await statements.run(OF_PLAYER, user_id, most))


async def of_client(statements: Statements, client: str, *, most: int) -> list[Visitor]:
    """The players to whom something happened from this address, the last first."""
    return many(OF_CLIENT, await statements.run(OF_CLIENT, client, most))


async def changed(
    statements: Statements, event: Literal["opted in", "avatar changed"], *, most: int
) -> list[ChangedProfile]:
    """The players of the LATEST events who did this, and still have what they chose, the last first."""
    return many(CHANGED, await statements.run(CHANGED, event, most))


# The index of ids has the newest at its end.
REGISTERED = Query(
    "admin_registered",
    f"""
    SELECT happened_at AS at, username, users.id, display_name, visible, avatar_extension AS avatar, client
    FROM (SELECT * FROM account_history ORDER BY id DESC LIMIT {LATEST}) AS latest
    JOIN users ON users.id = latest.user_id LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    WHERE event = 'register' ORDER BY latest.id DESC LIMIT $1::int
    """,  # noqa: S608
    prepared=False,
    row=RegisteredPlayer,
)


async def registered(statements: Statements, *, most: int) -> list[RegisteredPlayer]:
    """The newest players of the LATEST events, and where they came from, the last first."""
    return many(REGISTERED, await statements.run(REGISTERED, most))
