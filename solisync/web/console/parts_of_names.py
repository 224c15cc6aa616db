"""Looking for a part of players' names, for a bounded time, for the console and for `solisync users find`."""

from operator import attrgetter

from twisted.internet.base import ReactorBase

from ...postgres.transaction import Statements
from ...storage import finding
from ...storage.finding import FoundPlayer
from .pages_of_lists import cut

SECONDS = 2.0


async def find_part(
    statements: Statements,
    reactor: ReactorBase,
    text: str,
    *,
    display_names: bool,
    most: int,
    after: str | None = None,
) -> tuple[list[FoundPlayer], str | None]:
    """Up to `most` players, and where to go on when there may be more: after this username, or id of a player.

    Ends after SECONDS, wherever the search has come to.
    """
    place = attrgetter("id" if display_names else "username")
    found: list[FoundPlayer] = []
    deadline = reactor.seconds() + SECONDS
    async for page in finding.by_part(statements, text, display_names=display_names, most=most + 1, after=after):
        found += page.players
        if len(found) > most or page.last is None:
            break
        if reactor.seconds() > deadline:
            return found, page.last
    return cut(found, most, place)
