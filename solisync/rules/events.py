"""Events of streams: their shapes, their text, and the boards that a stream may name (docs/live.md)."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ..errors import BadRequest
from .challenge import read_day
from .replays import VerdictStatus
from .shapes import Id, Time

BOARDS_MAX = 3
RETRY_MS = (1_000, 10_000)  # a client opens its stream again after a random time in this range

HEARTBEAT = b":\n\n"  # a comment, which clients skip

EndReason: TypeAlias = Literal[
    "stopping", "slow", "token_expired", "session_ended", "account_deleted", "suspended", "superseded"
]
Revision = Annotated[
    str, Meta(pattern="^[0-9a-f]{32}$", description="revision of the stored progress, as in the ETag of pull")
]

_A_BOARD = f"leaderboard, verified or daily/<date>, at most {BOARDS_MAX} times"

BoardName = Annotated[str, Meta(pattern=r"^(leaderboard|verified|daily/[0-9]{4}-[0-9]{2}-[0-9]{2})$")]
BoardNames = Annotated[
    list[BoardName],
    Meta(
        max_length=BOARDS_MAX,
        description="boards whose changes to report",
        extra={"is": _A_BOARD},
    ),
]

_encode = msgspec.json.Encoder().encode


class StreamQuery(Struct, frozen=True):
    """What a stream reports beside the changes of its player."""

    board: BoardNames = []


class HelloEvent(Struct, frozen=True):
    """The first event of a stream, repeated when events may have been lost."""

    server_time: Time
    revision: Annotated[
        Revision | None, Meta(description="revision of the stored progress; null if the player has never pushed")
    ]


class ProgressEvent(Struct, frozen=True):
    """A push of the player was stored and changed more than times."""

    revision: Revision
    own: Annotated[bool, Meta(description="whether the push came from the session of this stream")]


class VerdictEvent(Struct, frozen=True):
    """A replay of the player has a new verdict."""

    replay_id: Id
    status: VerdictStatus


class BoardEvent(Struct, frozen=True):
    """A board that the stream names has changed."""

    board: Annotated[str, Meta(description="the name of the board, as in the query")]


class EndEvent(Struct, frozen=True):
    """The last event of a stream."""

    reason: EndReason


StreamEvent: TypeAlias = HelloEvent | ProgressEvent | VerdictEvent | BoardEvent | EndEvent

NAMES: dict[type[StreamEvent], str] = {
    HelloEvent: "hello",
    ProgressEvent: "progress",
    VerdictEvent: "verdict",
    BoardEvent: "board",
    EndEvent: "end",
}


def event_text(event: StreamEvent) -> bytes:
    """An event as Server-Sent Events spell it (HTML standard, "Server-sent events"): its name, and one line of JSON."""
    return b"event: %b\ndata: %b\n\n" % (NAMES[type(event)].encode("ascii"), _encode(event))


def retry_text(milliseconds: int) -> bytes:
    """The line that sets when the client opens a stream again after its end."""
    return b"retry: %d\n\n" % milliseconds


def boards_wanted(names: Sequence[str]) -> tuple[str, ...]:
    """The boards that a stream names, each once; raises BadRequest for a day that doesn't exist."""
    if all(read_day(name[6:]) is not None for name in names if name.startswith("daily/")):
        return tuple(dict.fromkeys(names))
    raise BadRequest("bad_query", f"board must be {_A_BOARD}")
