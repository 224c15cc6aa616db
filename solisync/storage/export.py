"""All that is stored about a player, read so that no connection is held between pages: docs/protocol.md "The player".

The service and `solisync users export` write the same document, by `document`.
"""

from binascii import a2b_base64
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from msgspec import Raw

from ..postgres.statement import Query, Row
from ..postgres.transaction import Statements
from ..rules import export
from ..rules.accounts import avatar_url
from ..rules.export import ExportedAccount, ExportedEntry, ExportedEvent, ExportedSession, ReplayHead
from ..rules.list_position import ListPosition
from . import moderation, paging
from .rows import converted, many, maybe, nested

PAGE_REPLAYS = 64
PAGE_BYTES = 262_144  # of bodies, after which no further one begins in a page; a body may take a MiB
PAGE_EVENTS = 128  # whose payloads may take 4 KiB each
START = ListPosition(*paging.position(None, paging.FIRST_TIME))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Beginning:
    """All about a player that is small; replays and events, those of these `names`, are exported up to `until`."""

    exported_at: datetime
    account: ExportedAccount
    leaderboard: ExportedEntry | None
    sessions: list[ExportedSession]
    names: list[int]
    until: datetime


def _beginning(
    exported_at: datetime,
    id: str,
    username: str,
    created_at: datetime,
    avatar_extension: str | None,
    access_expiries: list[int] | None,
    used_bytes: int | None,
    revision: int | None,
    counted: str | None,
    display_name: str | None,
    best_score: int | None,
    best_time_secs: int | None,
    recorded_at: datetime,
    visible: bool,
    session_ids: list[str] | None,
    begun: list[datetime] | None,
    used: list[datetime] | None,
    expiries: list[datetime] | None,
    agents: list[str | None] | None,
    access: list[int | None] | None,
    names: list[int] | None,
    until: datetime,
) -> Beginning:
    account = ExportedAccount(
        id=id,
        username=username,
        created_at=created_at,
        avatar_url=avatar_url(id, avatar_extension),
        access_expiries=access_expiries,
        replay_bytes=used_bytes,
        progress_revision=revision,
        progress_counted=None if counted is None else Raw(counted),
    )
    entry = (
        None if display_name is None else ExportedEntry(display_name, best_score, best_time_secs, recorded_at, visible)
    )
    columns = (session_ids, begun, used, expiries, agents, access)
    sessions = [ExportedSession(*each) for each in zip(*(column or () for column in columns), strict=True)]
    return Beginning(exported_at, account, entry, sessions, names or [], until)


def _bytes(text: str | None, encoded: str | None) -> bytes:
    """Text that a statement has returned in one of these two ways, as UTF-8."""
    return a2b_base64(encoded or "") if text is None else text.encode()


# Names are those that DELETE of solisync.storage.accounts erases. Replays and events up to `until` are exported: clocks
# of nodes may be ahead of the database's, and nothing that was stored before is to be missing for that.
BEGIN = Query(
    "begin_export",
    """
    SELECT now AS exported_at, users.id, username, created_at, avatar_extension, access_expiries, used_bytes, revision,
        counted, display_name, best_score, best_time_secs, recorded_at, visible,
        session.ids AS session_ids, session.begun, session.used, session.expiries, session.agents, session.access,
        named.ids AS names, greatest(
            now,
            (SELECT received_at FROM replays WHERE user_id = users.id ORDER BY received_at DESC LIMIT 1),
            (SELECT received_at FROM analytics_events ORDER BY received_at DESC LIMIT 1)
        ) AS until
    FROM users
    CROSS JOIN clock_timestamp() AS now
    LEFT JOIN sync_states ON sync_states.user_id = users.id
    LEFT JOIN replay_usage ON replay_usage.user_id = users.id
    LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    CROSS JOIN LATERAL (
        SELECT array_agg(id) AS ids, array_agg(begun_at) AS begun, array_agg(used_at) AS used,
            array_agg(expires_at) AS expiries, array_agg(user_agent) AS agents, array_agg(access_expiry) AS access
        FROM (
            SELECT coalesce(session_id, jti)::text AS id,
                coalesce(begun_at, expires_at - interval '30 days') AS begun_at,
                coalesce(used_at, expires_at - interval '30 days') AS used_at,
                expires_at, user_agent, access_expiry
            FROM refresh_tokens WHERE user_id = users.id AND expires_at > now ORDER BY 3 DESC, jti
        ) AS each
    ) AS session
    CROSS JOIN LATERAL (
        SELECT array_agg(analytics_names.id) AS ids
        FROM analytics_names, (
            SELECT CASE WHEN username ~ '^[0-9A-Fa-f]{32}$' THEN username::uuid END AS id
        ) AS alias
        WHERE name IN (users.id::text, username)
           OR name = alias.id::text AND NOT EXISTS (SELECT FROM users AS other WHERE other.id = alias.id)
    ) AS named
    WHERE users.id = $1::uuid
    """,
    row=_beginning,
)

AVATAR = Query(
    "export_avatar",
    """
    SELECT avatar_extension AS extension, translate(encode(image, 'base64'), E'\\n', '') AS base64
    FROM users JOIN avatars ON user_id = id WHERE id = $1::uuid
    """,
    row=export.avatar,
)

# Here and below, text with characters beyond ASCII comes as base64: as text it would take up to four times its size.
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

# In the order of replays_of_player. An equality in the place of both comparisons would allow the order of
# replays_recent as well, and that index leads past everybody's.
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
    row=nested(export.replay, ReplayHead, _bytes),
)

# Likewise. The name may have been erased since.
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


class Read(Protocol):
    """Runs work that is a single statement, as Database.autocommit does."""

    def __call__(self, work: Callable[..., Awaitable[T]], *arguments: Any) -> Awaitable[T]: ...


async def begin(statements: Statements, user_id: str) -> Beginning | None:
    """What an export begins with; None when the player is gone."""
    return maybe(BEGIN, await statements.run(BEGIN, user_id))


class Part:
    """A part of the document, which is no longer kept here when it is taken: a client may take a minute to read it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def take(self) -> bytes:
        """The part; to be called once."""
        content, self._content = self._content, b""
        return content


@dataclass(frozen=True, slots=True)
class Page:
    """Some records in a row, separated, and where the next page begins."""

    part: Part
    last: ListPosition


async def document(read: Read, user_id: str, beginning: Beginning) -> AsyncGenerator[bytes, None]:
    """The document, part by part, each of which is read from the database when it is asked for.

    No connection is held in between. What is deleted meanwhile may be missing; each record is whole.
    """
    yield export.opening(beginning.exported_at, beginning.account)
    yield (await read(_avatar, user_id)).take()
    yield export.BEFORE_PROGRESS
    yield (await read(_progress, user_id)).take()
    yield export.middle(beginning.leaderboard, beginning.sessions)
    yield (await read(_moderation, user_id)).take()
    yield export.BEFORE_REPLAYS
    until = beginning.until
    async for part in _parts(lambda after, key: read(_replays, key, after, until), [user_id]):
        yield part.take()
    yield export.BEFORE_ANALYTICS
    async for part in _parts(lambda after, key: read(_events, key, after, until), beginning.names):
        yield part.take()
    yield export.END


async def _parts(
    read_page: Callable[[ListPosition, Any], Awaitable[Page | None]], keys: Sequence[Any]
) -> AsyncGenerator[Part, None]:
    """The pages for each of these keys, with separators between them."""
    first = True
    for key in keys:
        page = await read_page(START, key)
        while page is not None:
            if not first:
                yield Part(export.SEPARATOR)
            first = False
            yield page.part
            page = await read_page(page.last, key)


async def _avatar(statements: Statements, user_id: str) -> Part:
    return Part(maybe(AVATAR, await statements.run(AVATAR, user_id)) or b"null")


async def _progress(statements: Statements, user_id: str) -> Part:
    return Part(maybe(PROGRESS, await statements.run(PROGRESS, user_id)) or b"null")


async def _moderation(statements: Statements, user_id: str) -> Part:
    return Part(export.moderation(await moderation.of(statements, user_id)))


async def _replays(statements: Statements, user_id: str, after: ListPosition, until: datetime) -> Page | None:
    rows = await statements.run(REPLAYS, user_id, *after, until)
    return _page(rows, many(REPLAYS, rows))


async def _events(statements: Statements, name: int, after: ListPosition, until: datetime) -> Page | None:
    rows = await statements.run(EVENTS, name, *after, until)
    return _page(rows, [export.event(each) for each in many(EVENTS, rows)])


def _page(rows: list[Row], records: Sequence[tuple[bytes, ...]]) -> Page | None:
    if not rows:
        return None
    last_id, received_at, *_ = rows[-1]
    rows.clear()  # the same bodies once more, as text
    return Page(Part(export.joined(records)), ListPosition(received_at, last_id))
