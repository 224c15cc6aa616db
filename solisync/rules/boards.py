"""Boards of verified replays: their names, and the parameters of their queries.

See docs/protocol.md "Boards", docs/verification.md "Boards".
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Raw, Struct, structs

from ..errors import BadRequest, NotFound
from ..klondike import DRAW_MODES
from .challenge import daily_challenge, day_before, read_day, read_deal
from .queries import EARLIER, position_of, position_text
from .shapes import Id, Time

OWN = "own"
"""The board of all verified Classic replays of a player, including unlisted ones; it has no ranks."""

DAILY_HOURS = 36
LIMIT_DEFAULT, LIMIT_MAX = 20, 100
NEIGHBOURS = 10
RANKS = 10_000

DrawMode = Literal[DRAW_MODES]  # type: ignore[valid-type]
PageLimit = Annotated[int, Meta(ge=1, le=LIMIT_MAX, description=f"rows of a page; {LIMIT_DEFAULT} by default")]

PlaceText = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9_-]{38}$",
        description="`next` of the previous page; absent for the first page",
        extra={"is": EARLIER},
    ),
]
AroundText = Annotated[
    Literal["me"], Meta(description="`me`: the player's own entry and its neighbours; without `limit` and `after`")
]


class BoardEntry(Struct, frozen=True):
    """A line of a board: the best verified replay of a player."""

    rank: Annotated[int | None, Meta(description=f"the place, counted up to {RANKS:,}; null beyond")]
    display_name: str
    score: int
    time_seconds: Annotated[
        Raw, Meta(extra_json_schema={"type": "number"}, description="the client's claim, never verified")
    ]
    moves: int
    undos: int
    mode: str
    draw_mode: str
    deal: Annotated[str | None, Meta(description="the seed as text")]
    replay_id: Id
    received_at: Time
    own: bool


class BoardPage(Struct, frozen=True):
    """A page of a board, best first; `next` is the position of the next page."""

    entries: list[BoardEntry]
    next: Annotated[str | None, Meta(description="for `after`; null on the last page, and with `around`")]


class BoardQuery(Struct, frozen=True):
    """The part of a board to show."""

    limit: PageLimit | None = None
    after: PlaceText | None = None
    around: AroundText | None = None


class ClassicBoardQuery(BoardQuery, frozen=True):
    """The part of the board of mode Classic to show, for one draw mode or both."""

    draw_mode: DrawMode | None = None


class Place(NamedTuple):
    """A place between two entries of a board; `deficit` is minus the score."""

    deficit: int
    received_at: datetime
    replay_id: str

    @property
    def text(self) -> str:
        """The place as clients receive and send it."""
        return position_text("i", *self)


class Window(NamedTuple):
    """The part of a board to show: `limit` entries `after` a place, or the entries around the player's own."""

    limit: int = LIMIT_DEFAULT
    after: Place | None = None
    around_me: bool = False


def classic_board(draw_mode: str | None) -> str:
    """The name of the board of mode Classic, for one draw mode or both."""
    return "classic" if draw_mode is None else f"classic/{draw_mode}"


def daily_board(day: str) -> tuple[str, date]:
    """The name of a day's board, and the day; raises NotFound for any other text."""
    begins = read_day(day)
    if begins is None:
        raise no_such_day()
    return f"daily/{day}", begins


def no_such_day() -> NotFound:
    """The error for a day that has not begun or doesn't exist."""
    return NotFound("day_not_found", "no such day")


def deal_board(seed: str, draw_mode: str) -> str:
    """The name of a deal's board; raises NotFound if the deal doesn't exist."""
    read_deal(seed, draw_mode)
    return f"deal/{seed}/{draw_mode}"


def days_of(*, mode: str, seed: int | None, received_at: datetime) -> list[str]:
    """The days' boards that rank a verified replay; the database decides about the other boards (`place_replay`)."""
    received_on = received_at.astimezone(UTC).date()
    return [
        f"daily/{day}"
        for day in dict.fromkeys((received_on, day_before(received_on)))  # imported times may be in the year 1 or 9999
        if mode != "Zen"
        and daily_challenge(day).seed == seed
        and received_at - datetime.combine(day, time(), UTC) < timedelta(hours=DAILY_HOURS)
    ]


def window(query: BoardQuery) -> Window:
    """The part of a board to show; raises BadRequest."""
    if query.around:
        if query.limit or query.after:
            raise BadRequest("bad_query", "around must be me, without limit and after")
        return Window(limit=2 * NEIGHBOURS + 1, around_me=True)
    return Window(
        limit=query.limit or LIMIT_DEFAULT,
        after=position_of(query.after, "after", _place, "i"),
    )


def page(found: Sequence[BoardEntry], limit: int) -> BoardPage:
    """A page of the first `limit` entries, with the position of the next page if there are more.

    Storage returns in each `rank` the number of entries before the first one. The page has the entry's place instead.
    """
    places = ((entry.rank or 0) + number for number, entry in enumerate(found, 1))
    entries = [
        structs.replace(entry, rank=place if place <= RANKS else None)
        for entry, place in zip(found[:limit], places, strict=False)
    ]
    return BoardPage(entries, _place_of(entries[-1]).text if len(found) > limit else None)


def _place_of(entry: BoardEntry) -> Place:
    return Place(-entry.score, entry.received_at, entry.replay_id)


def _place(deficit: int, received_at: datetime, replay_id: str) -> Place:
    # SQL can't spell the least integer: -2147483648::int negates a number that is out of range
    if deficit == -(2**31):
        raise ValueError
    return Place(deficit, received_at, replay_id)
