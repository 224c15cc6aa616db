"""Everything that is stored about a player, read page by page: docs/protocol.md "The player".

No connection is held between pages. A page ends with the body that takes it over PAGE_BYTES.
"""

from binascii import a2b_base64
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from msgspec import Raw
from msgspec.json import Decoder

from ...postgres.declared import maybe
from ...postgres.statement import Query
from ...postgres.transaction import Statements
from ...rules.export import (
    ExportedAccount,
    ExportedEntry,
    ExportedEvent,
    ExportedGame,
    ExportedHappening,
    ExportedSession,
    ReplayHead,
    StoredAvatar,
    StoredReplay,
)
from ...rules.queries import ListPosition
from ...rules.recovery import CodesLeft
from .. import paging
from ..rows import columns, converted, nested, optional
from .accounts import AVATAR_URL

PAGE_REPLAYS = 64
PAGE_BYTES = 262_144  # of bodies: the last one of a page may exceed this by a MiB
PAGE_EVENTS = 128  # each payload may take 4 KiB
PAGE_HISTORY = 1_000
PAGE_GAMES = 1_000
START = ListPosition(*paging.position(None, paging.FIRST_TIME))

T = TypeVar("T")

_read_sessions = Decoder(list[ExportedSession]).decode


@dataclass(frozen=True, slots=True)
class ExportStart:
    """A player's small data, and the bounds of the rest: replays, and events with these `names`, up to `until`."""

    exported_at: datetime
    account: ExportedAccount
    leaderboard: ExportedEntry | None
    sessions: list[ExportedSession]
    codes: CodesLeft
    names: list[int]
    until: datetime


def _bytes(text: str | None, encoded: str | None) -> bytes:
    """The UTF-8 bytes of a text that a statement returned plain or in base64."""
    return a2b_base64(encoded or "") if text is None else text.encode()


# Here and below, text with characters beyond ASCII is returned as base64: as text it would take up to four times its
# size.
PROGRESS = Query(
    "export_progress",
    """
    SELECT CASE WHEN length(payload) = octet_length(payload) THEN payload END AS text,
        CASE WHEN length(payload) <> octet_length(payload) THEN encode(convert_to(payload, 'UTF8'), 'base64') END
            AS encoded
    FROM sync_states WHERE user_id = $1::uuid
    """,
    row=_bytes,
)

# Reads in the order of the index replays_of_player. An equality instead of the two comparisons would also fit the index
# replays_recent, which leads past the replays of all players.
REPLAYS = Query(
    "export_replays",
    f"""
    SELECT id, received_at, unlisted IS NULL AS listed, coalesce(held, false) AS held,
        CASE WHEN length(body) = size THEN body END AS text,
        CASE WHEN length(body) <> size THEN encode(convert_to(body, 'UTF8'), 'base64') END AS encoded
    FROM (
        SELECT id, received_at, unlisted, held, body, size, sum(size) OVER (
            ORDER BY user_id, received_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before
        FROM (
            SELECT user_id, id, received_at, unlisted, held, body, size FROM replays
            WHERE (user_id, received_at, id) > ($1::uuid, $2::timestamptz, $3::uuid) AND user_id <= $1::uuid
              AND received_at <= $4::timestamptz
            ORDER BY user_id, received_at, id LIMIT {PAGE_REPLAYS}
        ) AS following
    ) AS page
    WHERE coalesce(before, 0) < {PAGE_BYTES}
    """,  # noqa: S608
    row=nested(StoredReplay, ReplayHead, _bytes),
)

# Uses the same two comparisons as REPLAYS. The name may have been erased since the export began.
EVENTS = Query(
    "export_events",
    f"""
    SELECT id, received_at, client_time, session_id, (SELECT name FROM analytics_names WHERE id = $1::bigint) AS name,
        event_type, payload
    FROM analytics_events
    WHERE (name_id, received_at, id) > ($1::bigint, $2::timestamptz, $3::uuid) AND name_id <= $1::bigint
      AND received_at <= $4::timestamptz
      AND EXISTS (SELECT FROM analytics_names WHERE id = $1::bigint)
    ORDER BY name_id, received_at, id LIMIT {PAGE_EVENTS}
    """,  # noqa: S608
    row=converted(ExportedEvent, payload=Raw),
)

HISTORY = Query(
    "export_history",
    f"""
    SELECT id, happened_at AS at, event, reason, client, times FROM account_history
    WHERE (user_id, id) > ($1::uuid, $2::bigint) AND user_id <= $1::uuid
    ORDER BY user_id, id LIMIT {PAGE_HISTORY}
    """,  # noqa: S608
    row=nested(lambda *row: row, lambda id: id, ExportedHappening),
)


GAMES = Query(
    "export_games",
    f"""
    SELECT {columns(ExportedGame)} FROM games
    WHERE (user_id, counted_at, game_id) > ($1::uuid, $2::timestamptz, $3::uuid) AND user_id <= $1::uuid
    ORDER BY user_id, counted_at, game_id LIMIT {PAGE_GAMES}
    """,  # noqa: S608
    row=ExportedGame,
)


class Page(NamedTuple, Generic[T]):
    """Consecutive records, and the position of the last one, after which the next page begins."""

    records: list[T]
    last: ListPosition


# The names are the ones that `accounts.delete` erases. Clocks of nodes may be ahead of the database's.
# So `until` is at least the time of the newest replay and event, and the export misses nothing that was stored before.
@maybe(
    f"""
    SELECT now AS exported_at, users.id, username, created_at, {AVATAR_URL} AS avatar_url, access_expiries,
        used_bytes AS replay_bytes, revision AS progress_revision, counted AS progress_counted,
        game_memory.games, forgotten_until AS games_forgotten_until, win_seconds, guest IS TRUE AS guest, guest_name,
        ARRAY(SELECT guest_id::text FROM joined_guests WHERE user_id = users.id ORDER BY joined_at) AS joined_guests,
        {columns(ExportedEntry)}, sessions,
        codes.left AS codes_left, codes.made_at AS codes_made_at, named.ids AS names, greatest(
            now,
            (SELECT received_at FROM replays WHERE user_id = users.id ORDER BY received_at DESC LIMIT 1),
            (SELECT received_at FROM analytics_events ORDER BY received_at DESC LIMIT 1)
        ) AS until
    FROM users
    CROSS JOIN clock_timestamp() AS now
    LEFT JOIN sync_states ON sync_states.user_id = users.id
    LEFT JOIN replay_usage ON replay_usage.user_id = users.id
    LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    LEFT JOIN game_memory ON game_memory.user_id = users.id
    CROSS JOIN LATERAL (
        SELECT json_agg(each)::text AS sessions FROM (
            SELECT {columns(ExportedSession, id="session_id")} FROM refresh_tokens
            WHERE user_id = users.id AND expires_at > now ORDER BY used_at DESC, jti
        ) AS each
    ) AS live
    CROSS JOIN LATERAL (
        SELECT count(*) AS left, max(made_at) AS made_at FROM recovery_codes WHERE user_id = users.id
    ) AS codes
    CROSS JOIN LATERAL (
        SELECT array_agg(analytics_names.id) AS ids
        FROM analytics_names, (
            SELECT CASE WHEN username ~ '^[0-9A-Fa-f]{{32}}$' THEN username::uuid END AS id
        ) AS alias
        WHERE name IN (users.id::text, username)
           OR name = alias.id::text AND NOT EXISTS (SELECT FROM users AS other WHERE other.id = alias.id)
           OR name = ANY (
                guest_name || ARRAY(SELECT guest_id::text FROM joined_guests WHERE user_id = users.id)
              ) AND NOT EXISTS (SELECT FROM users AS other WHERE other.username = name)
    ) AS named
    WHERE users.id = $1::uuid
    """,  # noqa: S608
    row=nested(
        ExportStart,
        lambda exported_at: exported_at,
        converted(ExportedAccount, progress_counted=Raw),
        optional(ExportedEntry),
        lambda sessions: _read_sessions(sessions or "[]"),
        lambda codes_left, codes_made_at: CodesLeft(codes_left, codes_made_at),
        lambda names: names or [],
        lambda until: until,
    ),
)
async def begin(user_id: str) -> ExportStart | None:
    """The beginning of an export; None if the player no longer exists."""


@maybe(
    """
    SELECT avatar_extension AS extension, translate(encode(image, 'base64'), E'\\n', '') AS base64
    FROM users JOIN avatars ON user_id = id WHERE id = $1::uuid
    """,
    row=StoredAvatar,
)
async def avatar(user_id: str) -> StoredAvatar | None:
    """The player's avatar; None without one."""


async def progress(statements: Statements, user_id: str) -> bytes:
    """The player's progress as JSON; null if none was stored."""
    return await statements.maybe(PROGRESS, user_id) or b"null"


async def replays(
    statements: Statements, after: ListPosition, user_id: str, until: datetime
) -> Page[StoredReplay] | None:
    """The next replays of a player; None at the end."""
    found = await statements.many(REPLAYS, user_id, *after, until)
    return Page(found, ListPosition(found[-1].head.received_at, found[-1].head.id)) if found else None


async def events(statements: Statements, after: ListPosition, name: int, until: datetime) -> Page[ExportedEvent] | None:
    """The next events of a name; None at the end."""
    found = await statements.many(EVENTS, name, *after, until)
    return Page(found, ListPosition(found[-1].received_at, found[-1].id)) if found else None


async def history(statements: Statements, after: ListPosition, user_id: str) -> Page[ExportedHappening] | None:
    """The next events in a player's history; None at the end. The id of a position is the number of a row."""
    number = 0 if after == START else int(after.id)
    found = await statements.many(HISTORY, user_id, number)
    if not found:
        return None
    last, happening = found[-1]
    return Page([each for _, each in found], ListPosition(happening.at, str(last)))


async def games(statements: Statements, after: ListPosition, user_id: str) -> Page[ExportedGame] | None:
    """The next games that a player has sent by their ids; None at the end."""
    found = await statements.many(GAMES, user_id, *after)
    return Page(found, ListPosition(found[-1].counted_at, found[-1].game_id)) if found else None
