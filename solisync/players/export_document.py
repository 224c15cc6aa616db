"""The document with everything that is stored about a player, for the service and `solisync users export`."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Protocol, TypeVar

from ..rules import export as rules
from ..storage.players import export as storage
from ..storage.players import restrictions
from ..storage.players.export import START, ExportStart, Page

T = TypeVar("T")


class Read(Protocol):
    """Runs work without a transaction, like Database.run."""

    def __call__(self, work: Callable[..., Awaitable[T]], *arguments: Any) -> Awaitable[T]: ...


async def export_document(read: Read, start: ExportStart) -> AsyncGenerator[bytes, None]:
    """Yield the document part by part; each part is read from the database when the caller asks for it.

    No connection is held between parts. Records that are deleted during the export may be missing, but no record is
    partial. A part isn't kept here once it is taken, because a client may take a minute to read it.

    The document has every game that was counted by its end: a restore could count a game of the progress twice if the
    list lacked it. The database's clock may have been ahead when it stored a game or an event of the history.
    """
    user_id = start.account.id
    yield rules.opening(start.exported_at, start.account)
    yield rules.avatar(await read(storage.avatar, user_id))
    yield rules.BEFORE_PROGRESS
    yield await read(storage.progress, user_id)
    done = await read(restrictions.moderation, user_id)
    middle = rules.middle(start.leaderboard, start.sessions, start.codes, done)
    parts: tuple[tuple[bytes, Callable[..., Awaitable[Page[Any] | None]], list[tuple[object, ...]]], ...] = (
        (middle, storage.replays, [(user_id, start.until)]),
        (rules.BEFORE_ANALYTICS, storage.events, [(name, start.until) for name in start.names]),
        (rules.BEFORE_HISTORY, storage.history, [(user_id,)]),
        (rules.BEFORE_GAMES, storage.games, [(user_id,)]),
    )
    for before, read_page, sources in parts:
        yield before
        first = True
        for source in sources:
            page = await read(read_page, START, *source)
            while page is not None:
                yield _taken(page, first=first)
                first = False
                page = await read(read_page, page.last, *source)
    yield rules.END


def _taken(page: Page[Any], *, first: bool) -> bytes:
    """Encode the records of a page as JSON and empty the page."""
    joined = rules.joined(page.records, first=first)
    page.records.clear()
    return joined
