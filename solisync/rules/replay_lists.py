"""Lists of replays: their shapes, and the parameters of their queries (docs/protocol.md "Replays")."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, structs

from .queries import ListPosition, PageText, PositionText
from .replays import Moment, VerdictStatus, shown_moment
from .shapes import U64, Id, Time

RECENT_DEFAULT = 20
RECENT_MAX = 50

Count = Annotated[
    int,
    Meta(
        ge=0,
        description=f"rows of a page; {RECENT_DEFAULT} by default; values above {RECENT_MAX} count as {RECENT_MAX}",
    ),
]
Verified = Annotated[Literal["verified"], Meta(description="only verified replays")]


class ListQuery(Struct, frozen=True):
    """A page of a list of replays."""

    limit: Count = RECENT_DEFAULT
    before: PositionText | None = None

    @property
    def count(self) -> int:
        """The number of replays to list."""
        return min(self.limit, RECENT_MAX)


class RecentQuery(ListQuery, frozen=True):
    """The recent list, or with `before` a page of it."""

    before: PageText | None = None
    verdict: Verified | None = None


class Recent(Struct, frozen=True):
    """A line in the list of recent replays; both numbers are spelled as in the upload."""

    id: Id
    username: str
    seed: U64 | None
    deal: Annotated[str | None, Meta(description="the seed as text, because clients may round large numbers")]
    draw_mode: str
    mode: str
    time_seconds: Annotated[Raw, Meta(extra_json_schema={"type": "number"})]
    final_score: Annotated[Raw, Meta(extra_json_schema={"type": "number"})]
    recorded_at: Moment
    received_at: Time
    verdict: VerdictStatus

    def __post_init__(self) -> None:
        structs.force_setattr(self, "recorded_at", shown_moment(self.recorded_at))


class OwnReplay(Recent, frozen=True):
    """A line in the list of a player's own replays."""

    listed: Annotated[bool, Meta(description="whether public lists show the replay")]
    size: Annotated[int, Meta(description="bytes of the upload")]


class OwnReplays(Struct, frozen=True):
    """A page of a player's own replays, newest first; `next` is the position of the next page."""

    replays: list[OwnReplay]
    next: Annotated[str | None, Meta(description="for `before`; null on the last page")]


class PlayerReplays(Struct, frozen=True):
    """A page of a player's listed replays, newest first; `next` is the position of the next page."""

    replays: list[Recent]
    next: Annotated[str | None, Meta(description="for `before`; null on the last page")]


class RecentReplays(Struct, frozen=True):
    """A page of the recent list, newest first; `next` is the position of the next page."""

    replays: list[Recent]
    next: Annotated[str | None, Meta(description="for `before`; null on the last page")]


class Listed(Struct, frozen=True):
    """Whether public lists show the replay."""

    listed: bool


def own_page(replays: list[OwnReplay], count: int) -> OwnReplays:
    """A page of the first `count` replays, with the position of the next page if there are more."""
    return OwnReplays(replays[:count], _next(replays, count))


def player_page(replays: list[Recent], count: int) -> PlayerReplays:
    """A page of the first `count` listed replays, with the position of the next page if there are more."""
    return PlayerReplays(replays[:count], _next(replays, count))


def recent_page(replays: list[Recent], count: int) -> RecentReplays:
    """A page of the first `count` replays, with the position of the next page if there are more."""
    return RecentReplays(replays[:count], _next(replays, count))


def _next(replays: Sequence[Recent], count: int) -> str | None:
    """The position after the first `count` replays; None if no replay comes before or after it."""
    if not 0 < count < len(replays):
        return None
    last = replays[count - 1]
    return ListPosition(last.received_at, last.id).text
