"""Boards of verified replays: which there are, on which a replay stands, and positions in them.

See docs/protocol.md "Boards", docs/verification.md "Boards".
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from struct import Struct as Packing
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from msgspec import Meta, Raw, Struct

from ..errors import BadRequest, NotFound
from ..klondike import DRAW_MODES
from .challenge import daily_challenge
from .shapes import EPOCH, Time, read_seed

OWN = "own"
"""All that a player has verified in mode Classic, unlisted replays too; nobody is ranked there."""

DAILY_HOURS = 36
LIMIT_DEFAULT, LIMIT_MAX = 20, 100
NEIGHBOURS = 10
RANKS = 10_000

DrawMode = Literal[DRAW_MODES]  # type: ignore[valid-type]
PageLimit = Annotated[int, Meta(ge=1, le=LIMIT_MAX, description=f"{LIMIT_DEFAULT} when absent")]

_BYTES = Packing(">iq16s")
_PATTERN = "^[A-Za-z0-9_-]{38}$"
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MICROSECOND = timedelta(microseconds=1)

PlaceText = Annotated[str, Meta(pattern=_PATTERN, description="`next` of the page before; absent for the first page")]
AroundText = Annotated[Literal["me"], Meta(description="one's own entry and those around it; without the other two")]


class BoardEntry(Struct, frozen=True, kw_only=True):
    """A line of a board: the best verified replay of a player there."""

    rank: Annotated[int | None, Meta(description=f"the place, counted to {RANKS:,}; null below")]
    display_name: str
    score: int
    time_seconds: Annotated[Raw, Meta(extra_json_schema={"type": "number"}, description="as reported, never verified")]
    moves: int
    undos: int
    mode: str
    draw_mode: str
    deal: Annotated[str | None, Meta(description="the seed as text")]
    replay_id: Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
    received_at: Time
    own: bool


class BoardPage(Struct, frozen=True):
    """A page of a board, best first; `next` leads to the one after it."""

    entries: list[BoardEntry]
    next: Annotated[str | None, Meta(description="for `after`; null at the end, and around oneself")]


class Ranked(NamedTuple):
    """A stored entry, in the order of its board; `ahead` counts the entries before the first that was read."""

    ahead: int
    display_name: str
    score: int
    time_seconds: Raw
    moves: int
    undos: int
    mode: str
    draw_mode: str
    deal: str | None
    replay_id: str
    received_at: datetime
    own: bool


class Place(NamedTuple):
    """A place between two entries of a board; `deficit` is minus the score."""

    deficit: int
    received_at: datetime
    replay_id: str

    @property
    def text(self) -> str:
        """The place as clients see it: 28 bytes in base64url (RFC 4648 §5), without padding."""
        packed = _BYTES.pack(self.deficit, (self.received_at - EPOCH) // _MICROSECOND, UUID(self.replay_id).bytes)
        return urlsafe_b64encode(packed).rstrip(b"=").decode("ascii")


class Window(NamedTuple):
    """What part of a board to show: `limit` entries `after` a place, or those around oneself."""

    limit: int = LIMIT_DEFAULT
    after: Place | None = None
    around_me: bool = False


def classic_board(draw_mode: list[str]) -> str:
    """The board of mode Classic, given all values of `draw_mode` in the query; raises BadRequest."""
    if not draw_mode:
        return "classic"
    if len(draw_mode) > 1 or draw_mode[0] not in DRAW_MODES:
        raise BadRequest("bad_query", f"draw_mode must be one of {', '.join(DRAW_MODES)}")
    return f"classic/{draw_mode[0]}"


def daily_board(day: str) -> tuple[str, date]:
    """The board of a day, and that day; raises NotFound for what is no date."""
    if _DAY.fullmatch(day):
        try:
            return f"daily/{day}", date.fromisoformat(day)
        except ValueError:
            pass
    raise no_such_day()


def no_such_day() -> NotFound:
    """The error for a day that has not begun, or is none."""
    return NotFound("day_not_found", "no such day")


def deal_board(seed: str, draw_mode: str) -> str:
    """The board of a deal; raises NotFound for what is none."""
    if read_seed(seed) is None or draw_mode not in DRAW_MODES:
        raise NotFound()
    return f"deal/{seed}/{draw_mode}"


def boards_of(*, mode: str, draw_mode: str, seed: int | None, received_at: datetime) -> list[str]:
    """The names of all boards to which a verified replay belongs, once it is listed."""
    boards = ["classic", f"classic/{draw_mode}", OWN] if mode == "Classic" else []
    if mode == "Zen" or seed is None:
        return boards
    boards.append(f"deal/{seed}/{draw_mode}")
    received_on = received_at.astimezone(UTC).date()
    day_before = date.fromordinal(max(1, received_on.toordinal() - 1))  # an import may bring the year 1, or 9999
    for day in dict.fromkeys((received_on, day_before)):
        since = received_at - datetime.combine(day, time(), UTC)
        if since < timedelta(hours=DAILY_HOURS) and daily_challenge(day).seed == seed:
            boards.append(f"daily/{day}")
    return boards


def days_of(boards: Sequence[str]) -> list[str] | None:
    """Those of these boards that are stored with a verdict: of days. None without; others follow from the replay."""
    return [board for board in boards if board.startswith("daily/")] or None


def window(limit: list[str], after: list[str], around: list[str]) -> Window:
    """What to show, given all values of these parameters in the query; raises BadRequest."""
    if around:
        if around != ["me"] or limit or after:
            raise BadRequest("bad_query", "around must be me, without limit and after")
        return Window(limit=2 * NEIGHBOURS + 1, around_me=True)
    return Window(limit=_limit(limit), after=_place(after))


def page(found: Sequence[Ranked], limit: int) -> BoardPage:
    """The first `limit` of these entries, and where to go on if there are more of them."""
    entries = [_entry(number, **each._asdict()) for number, each in enumerate(found[:limit], 1)]
    return BoardPage(entries, _place_of(entries[-1]).text if len(found) > limit else None)


def _entry(number: int, *, ahead: int, **shown: Any) -> BoardEntry:
    return BoardEntry(rank=ahead + number if ahead + number <= RANKS else None, **shown)


def _place_of(entry: BoardEntry) -> Place:
    return Place(-entry.score, entry.received_at, entry.replay_id)


def _limit(values: list[str]) -> int:
    if not values:
        return LIMIT_DEFAULT
    if len(values) == 1 and re.fullmatch(r"[1-9]\d?|100", values[0], re.ASCII):
        return int(values[0])
    raise BadRequest("bad_query", f"limit must be a whole number from 1 to {LIMIT_MAX}")


def _place(values: list[str]) -> Place | None:
    if not values:
        return None
    if len(values) == 1 and re.fullmatch(_PATTERN, values[0]):
        deficit, microseconds, uuid = _BYTES.unpack(urlsafe_b64decode(values[0] + "=="))
        try:
            place = Place(deficit, EPOCH + timedelta(microseconds=microseconds), str(UUID(bytes=uuid)))
        except OverflowError:
            place = None  # no time of the years 1 to 9999
        # in SQL the least integer can't be written, because -2147483648::int is the negative of what is none
        if place is not None and place.text == values[0] and deficit > -(2**31):
            return place
    raise BadRequest("bad_query", "after must be what an earlier page gave as next")
