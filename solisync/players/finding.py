"""Searches for players, for the console and `solisync users find`: by id, name or address."""

from collections.abc import Callable
from operator import attrgetter
from typing import Annotated, Literal, TypeVar

from msgspec import Meta, Struct
from twisted.internet.base import ReactorBase

from ..access.client_address import bucket, parse_address
from ..errors import BadRequest
from ..postgres.transaction import Statements
from ..rules.accounts import username_to_look_up
from ..rules.queries import EARLIER, ListPosition, read_position
from ..rules.shapes import canonical_uuid
from ..storage.players import accounts, history, players
from ..storage.players.accounts import Player
from ..storage.players.history import Visitor
from ..storage.players.players import FoundPlayer

Where = Literal["name", "part", "display_name", "address"]
Next = Annotated[str | None, Meta(description="the position of the next page; null on the last one")]

SLOW: tuple[Where, ...] = ("part", "display_name")  # these read all names

T = TypeVar("T")


class FoundPlayers(Struct, frozen=True):
    """A page of players, in the requested order; those that a search found are by name.

    A search by address returns `visitors`: players with events from that address, newest first.
    """

    players: list[FoundPlayer]
    next: Next
    visitors: list[Visitor] = []
    more: Annotated[bool, Meta(description="whether more players are in the state than this list has")] = False


async def named(statements: Statements, text: str) -> Player | None:
    """The player with this username or, if the text has hyphens, this id; raises BadRequest for U+0000."""
    user_id = canonical_uuid(text) if "-" in text else None
    return await accounts.find(statements, user_id, None if user_id else username_to_look_up(text))


async def find(
    statements: Statements, reactor: ReactorBase, text: str, where: Where, most: int, seconds: float, after: str | None
) -> FoundPlayers:
    """Find up to `most` players, those after the place that an earlier page gave as next.

    A SLOW search ends after this many `seconds`, with what it has found. Raises BadRequest for a text that is no
    address, and for a place that isn't one.
    """
    match where:
        case "address":
            address = parse_address(text)
            if address is None:
                raise BadRequest("bad_query", f"'{text}' is not an address")
            before = read_position(after, "after")
            visitors = await history.of_client(statements, bucket(address), most=most + 1, before=before)
            shown, following = cut(visitors, most, lambda each: ListPosition(each.last_at, each.id).text)
            return FoundPlayers([], following, shown)
        case "part" | "display_name":
            names = where == "display_name"
            place = _read_id(after) if names else (after or "").strip()
            return FoundPlayers(
                *await players.by_part(
                    statements, reactor, text, display_names=names, most=most, seconds=seconds, after=place
                )
            )
    user_id = canonical_uuid(text)
    found = await players.by_ids(statements, [user_id]) if user_id else []
    found = found or await players.by_beginning(statements, text, most=most + 1, after=(after or "").strip())
    return FoundPlayers(*cut(found, most, attrgetter("username")))


def cut(rows: list[T], size: int, place: Callable[[T], object], end: object = None) -> tuple[list[T], str | None]:
    """Return the first `size` rows, and the place of the last of them if there are more rows, else `end`."""
    following = place(rows[size - 1]) if len(rows) > size else end
    return rows[:size], None if following is None else str(following)


def _read_id(after: str | None) -> str | None:
    if after is None:
        return None
    user_id = canonical_uuid(after)
    if user_id is None:
        raise BadRequest("bad_query", f"after must be {EARLIER}")
    return user_id
