"""Lists of any length, for operators: players, replays, events.

They are read a page at a time, each beginning after the last row of the one before: however long the list, neither side
keeps much of it, and no transaction stays open for as long as somebody reads.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction
from ..rules.analytics import name_of
from .administration import Player
from .rows import many

PAGE = 1_000
BODIES = 8  # in a page of replays, each of which may take a MiB

FIRST_TIME = datetime(1, 1, 2, tzinfo=UTC)  # a day that has one before it in every time zone
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listed:
    """A line in the list of players."""

    id: str
    username: str
    created_at: datetime
    avatar: str | None


@dataclass(frozen=True, slots=True)
class StoredReplay:
    """A replay of a player, as it was uploaded."""

    id: str
    received_at: datetime
    body: str


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An analytics event; `name` is whom it names, unless nobody or erased, and `payload` JSON as it was sent."""

    id: str
    received_at: datetime
    client_time: datetime
    session_id: str
    name: str | None
    event_type: str
    payload: str


# In a username no character comes after "~".
LIST = Statement(
    "admin_list_players",
    """
    SELECT id, username, created_at, avatar_extension FROM users
    WHERE username > $1::text AND username >= $2::text AND username < $2::text || '~'
    ORDER BY username LIMIT $3::int
    """,
)

REPLAYS = Statement(
    "admin_replays",
    """
    SELECT id, received_at, body FROM replays
    WHERE user_id = $1::uuid AND (received_at, id) > ($2::timestamptz, $3::uuid)
    ORDER BY received_at, id LIMIT $4::int
    """,
)

EVENTS = Statement(
    "admin_events",
    """
    SELECT event.id, received_at, client_time, session_id, name, event_type, payload
    FROM analytics_events AS event LEFT JOIN analytics_names ON analytics_names.id = name_id
    WHERE (received_at, event.id) > ($1::timestamptz, $2::uuid) AND received_at < $3::timestamptz
    ORDER BY received_at, event.id LIMIT $4::int
    """,
)

# Nothing tells where the events of a name are, so this reads all of them: once.
EVENTS_NAMING = Statement(
    "admin_events_naming",
    """
    SELECT event.id, received_at, client_time, session_id, name, event_type, payload
    FROM analytics_events AS event JOIN analytics_names ON analytics_names.id = name_id
    WHERE name = ANY ($1::text[]) AND (received_at, event.id) > ($2::timestamptz, $3::uuid)
    ORDER BY received_at, event.id LIMIT $4::int
    """,
)


async def pages(read: Callable[[T | None], Awaitable[list[T]]], most: int) -> AsyncIterator[list[T]]:
    """Page after page: `read` gets the last row of the one before. A page of less than `most` is the last."""
    page = await read(None)
    while page:
        yield page
        if len(page) < most:
            return
        page = await read(page[-1])


async def list_page(transaction: Transaction, after: Listed | None, *, prefix: str) -> list[Listed]:
    """The players whose names begin with `prefix`, by name, up to PAGE of them."""
    return many(Listed, await transaction.run(LIST, after.username if after else "", prefix, PAGE))


async def replay_page(transaction: Transaction, after: StoredReplay | None, user_id: str) -> list[StoredReplay]:
    """The player's replays, the oldest first, up to BODIES of them."""
    received_at, replay_id = _place(after, FIRST_TIME)
    return many(StoredReplay, await transaction.run(REPLAYS, user_id, received_at, replay_id, BODIES))


async def event_page(
    transaction: Transaction, after: StoredEvent | None, *, since: datetime, until: datetime
) -> list[StoredEvent]:
    """The events that were received from `since` on and before `until`, the oldest first, up to PAGE of them."""
    received_at, event_id = _place(after, since)
    return many(StoredEvent, await transaction.run(EVENTS, received_at, event_id, until, PAGE))


async def events_naming(transaction: Transaction, after: StoredEvent | None, player: Player) -> list[StoredEvent]:
    """The events that name this player, by id or by username, the oldest first, up to PAGE of them."""
    received_at, event_id = _place(after, FIRST_TIME)
    names = [player.id, name_of(player.username)]
    return many(StoredEvent, await transaction.run(EVENTS_NAMING, names, received_at, event_id, PAGE))


def _place(after: StoredReplay | StoredEvent | None, first: datetime) -> tuple[datetime, str]:
    """Where a page begins: after this row, or with the first row that was received at `first` or later."""
    return (after.received_at, after.id) if after else (first - timedelta(microseconds=1), LAST_ID)
