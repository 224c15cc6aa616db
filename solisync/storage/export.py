"""All that is stored about a player, read so that no connection is held between pages: docs/protocol.md "The player".

The service and `solisync users export` write the same document, by `document`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from ..postgres.statement import Row
from ..postgres.transaction import Statements
from ..rules import export
from ..rules.list_position import ListPosition
from . import moderation, paging
from .exported import AVATAR, EVENTS, HISTORY, PROGRESS, REPLAYS, Beginning
from .rows import many, maybe

START = ListPosition(*paging.position(None, paging.FIRST_TIME))
START_OF_HISTORY = ListPosition(paging.FIRST_TIME, "0")

T = TypeVar("T")


class Read(Protocol):
    """Runs work that is a single statement, as Database.autocommit does."""

    def __call__(self, work: Callable[..., Awaitable[T]], *arguments: Any) -> Awaitable[T]: ...


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
    yield export.middle(beginning.leaderboard, beginning.sessions, beginning.codes)
    yield (await read(_moderation, user_id)).take()
    yield export.BEFORE_REPLAYS
    until = beginning.until
    async for part in _parts(lambda after, key: read(_replays, key, after, until), [user_id]):
        yield part.take()
    yield export.BEFORE_ANALYTICS
    async for part in _parts(lambda after, key: read(_events, key, after, until), beginning.names):
        yield part.take()
    yield export.BEFORE_HISTORY
    async for part in _parts(lambda after, key: read(_history, key, after, until), [user_id], START_OF_HISTORY):
        yield part.take()
    yield export.END


async def _parts(
    read_page: Callable[[ListPosition, Any], Awaitable[Page | None]], keys: Sequence[Any], start: ListPosition = START
) -> AsyncGenerator[Part, None]:
    """The pages for each of these keys, with separators between them."""
    first = True
    for key in keys:
        page = await read_page(start, key)
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


async def _history(statements: Statements, user_id: str, after: ListPosition, until: datetime) -> Page | None:
    rows = await statements.run(HISTORY, user_id, after.id, until)
    return _page(rows, many(HISTORY, rows))


def _page(rows: list[Row], records: Sequence[tuple[bytes, ...]]) -> Page | None:
    if not rows:
        return None
    last_id, received_at, *_ = rows[-1]
    rows.clear()  # the same bodies once more, as text
    return Page(Part(export.joined(records)), ListPosition(received_at, last_id))
