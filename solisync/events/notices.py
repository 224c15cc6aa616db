"""Notices: messages of a process to its own streams and to all other processes about something it has committed.

On the bus a notice is a JSON array that begins with its kind. Ids of players, sessions and replays take 22 characters
of base64url instead of 36. A process skips kinds that it doesn't know and messages of other versions, so nodes of
different versions can share a bus.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from secrets import token_urlsafe
from typing import ClassVar, Protocol, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Raw, Struct, structs
from twisted.logger import Logger

from ..postgres.database import Database
from ..process.tasks import detached
from ..storage import streams

VERSION = 1
REMEMBERED = 4_096  # cached ids in each form
MESSAGE_BYTES = 7_900  # PostgreSQL accepts fewer than 8,000
NAMED_MAX = 100  # boards named in a notice, which has to fit in a message

_log = Logger()


class _Notice(Struct, frozen=True, array_like=True):
    ids: ClassVar[tuple[str, ...]] = ()  # the fields that are UUIDs


class ProgressStored(_Notice, frozen=True, tag="progress"):
    """A player's push was stored, in this session if it is known."""

    ids = ("player", "session_id")
    player: str
    revision: str
    session_id: str | None


class VerdictStored(_Notice, frozen=True, tag="verdict"):
    """A replay of a player has a new verdict."""

    ids = ("player", "replay_id")
    player: str
    replay_id: str
    status: str


class BoardsChanged(_Notice, frozen=True, tag="boards"):
    """These boards have changed, by the names that streams use; without names, any board may have changed."""

    boards: tuple[str, ...] = ()


class SessionsEnded(_Notice, frozen=True, tag="sessions"):
    """Sessions of one player or all players, or the player's account, may have ended; the database knows which."""

    ids = ("player",)
    player: str | None


class ReplayStored(_Notice, frozen=True, tag="replay"):
    """A replay waits to be checked."""


def boards_changed(boards: tuple[str, ...], *, with_player: bool = False) -> tuple[BoardsChanged, ...]:
    """The notice that these boards have changed; no notice without boards.

    `with_player`: a player appeared, disappeared or was renamed. Then all boards that streams name count as changed.
    """
    named = not with_player and len(boards) <= NAMED_MAX
    return (BoardsChanged(boards if named else ()),) if boards else ()


Notice: TypeAlias = ProgressStored | VerdictStored | BoardsChanged | SessionsEnded | ReplayStored


class Publish(Protocol):
    """Notifies all processes of a commit: through the bus in the service, through `command_notices` in a command."""

    def __call__(self, *notices: Notice) -> None: ...


class BusMessage(Struct, frozen=True, array_like=True):
    """A batch of notices; `number` counts the sender's messages from 1, and is 0 for a sender's only message."""

    version: int
    sender: str
    number: int
    notices: list[Raw]


_encode = msgspec.json.Encoder().encode
_decode_message = msgspec.json.Decoder(BusMessage).decode
_decode_notice = msgspec.json.Decoder(Notice).decode


def encode_notice(notice: Notice) -> bytes:
    """A notice as it is encoded in a message."""
    return _encode(_with_ids(notice, _short))


def encode_messages(sender: str, number: int, notices: Iterable[bytes]) -> list[str]:
    """Messages with these encoded notices, numbered from `number` on: more than one if they don't fit in one."""
    messages: list[list[bytes]] = [[]]
    size = 0
    for notice in notices:
        if messages[-1] and size + len(notice) + 1 > MESSAGE_BYTES - 100:  # room for the rest of the message
            messages.append([])
            size = 0
        messages[-1].append(notice)
        size += len(notice) + 1
    return [
        _encode(BusMessage(VERSION, sender, number + place, [Raw(notice) for notice in part])).decode()
        for place, part in enumerate(messages)
    ]


def decode_message(text: str) -> BusMessage | None:
    """A message from the bus; None for another version or other text."""
    try:
        message = _decode_message(text)
    except msgspec.MsgspecError:
        return None
    return message if message.version == VERSION else None


def decode_notices(message: BusMessage) -> Iterator[Notice]:
    """The notices of a message that this version knows."""
    for raw in message.notices:
        try:
            yield _with_ids(_decode_notice(raw), _long)
        except (msgspec.MsgspecError, ValueError):
            continue


def _with_ids(notice: Notice, convert: Callable[[str], str]) -> Notice:
    given = {name: value for name in notice.ids if (value := getattr(notice, name)) is not None}
    return structs.replace(notice, **{name: convert(value) for name, value in given.items()}) if given else notice


@lru_cache(REMEMBERED)
def _short(uuid: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(uuid.replace("-", "")))[:22].decode("ascii")


@lru_cache(REMEMBERED)
def _long(text: str) -> str:
    return str(UUID(bytes=urlsafe_b64decode(text + "==")))


def command_notices(database: Database) -> Publish:
    """Return the `publish` of a command, which notifies all processes through `database` instead of a bus.

    Closing the database waits for notices that are being sent. A notice that can't be sent is logged and lost.
    """

    def publish(*notices: Notice) -> None:
        messages = encode_messages(token_urlsafe(6), 0, map(encode_notice, notices))
        sending = detached(database.run(streams.notify, messages))
        sending.addErrback(lambda failure: _log.warn("could not notify the service: {error}", error=failure.value))

    return publish
