"""The export of everything that is stored about a player: the shape of the document, and its parts as JSON.

Source: docs/protocol.md "The player". The document is written part by part: `opening`, avatar, BEFORE_PROGRESS,
progress, `middle`, replays, BEFORE_ANALYTICS, events, BEFORE_HISTORY, history, BEFORE_GAMES, games, END. SEPARATOR
comes between two records of a list.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct

from .avatars import media_type
from .games import CountedGame
from .recovery import CodesLeft
from .shapes import Id
from .sync import Payload

RawObject = Annotated[Raw, Meta(extra_json_schema={"type": "object", "additionalProperties": True})]
RawCounts = Annotated[Raw, Meta(extra_json_schema={"type": "array", "items": {"type": "integer", "minimum": 0}})]

SEPARATOR = b",\n"
BEFORE_PROGRESS = b',\n"progress":'
BEFORE_ANALYTICS = b'],\n"analytics":['
BEFORE_HISTORY = b'],\n"history":['
BEFORE_GAMES = b'],\n"games":['
END = b"]}\n"

_encode = msgspec.json.Encoder().encode


class ExportedAccount(Struct, frozen=True):
    """The player's account, without the hash of the password."""

    id: Id
    username: str
    created_at: datetime
    avatar_url: str | None
    access_expiries: Annotated[list[int] | None, Meta(description="`exp` of the latest access tokens")]
    replay_bytes: Annotated[int | None, Meta(description="storage that the replays use; null before the first upload")]
    progress_revision: Annotated[int | None, Meta(description="the number of times that progress was stored")]
    progress_counted: Annotated[RawCounts | None, Meta(description="totals that are counted, not compared")]
    games: Annotated[int | None, Meta(description="number of games that were sent by id; null before the first")]
    games_forgotten_until: Annotated[
        datetime | None,
        Meta(description="end of the latest one that was forgotten, because there were too many"),
    ]
    win_seconds: Annotated[int | None, Meta(description="time of all wins; null before the first game by id")]
    guest: bool
    guest_name: Annotated[str | None, Meta(description="the username that the player had as a guest")]
    joined_guests: Annotated[list[Id], Meta(description="guests whose games the player took over within 30 days")]


class ExportedAvatar(Struct, frozen=True):
    """The image that was uploaded."""

    content_type: str
    base64: str


class ExportedEntry(Struct, frozen=True):
    """The entry on the leaderboard, visible or not."""

    display_name: str
    best_score: int | None
    best_time_secs: int | None
    recorded_at: datetime
    visible: bool


class ExportedSession(Struct, frozen=True):
    """A session; `exp` of its newest access token and of the one before, each null if unknown."""

    id: Id
    begun_at: datetime
    used_at: datetime
    expires_at: datetime
    user_agent: str | None
    access_expiry: int | None
    access_expiry_before: int | None


class ExportedSuspension(Struct, frozen=True):
    """The suspension of the player: its beginning, its end, and the operator's message."""

    since: datetime
    until: datetime | None
    message: str | None
    was_visible: Annotated[bool, Meta(description="whether the entry on the leaderboard will be visible again")]


class ExportedAct(Struct, frozen=True):
    """An act of an operator on the player, or on one of the player's replays."""

    at: datetime
    act: str
    replay_id: Id | None
    reason: str | None
    note: str | None
    before: str | None
    after: str | None


class ExportedModeration(Struct, frozen=True):
    """Measures of operators; access tokens with an `exp` up to `access_cutoff` are refused."""

    suspension: ExportedSuspension | None
    locked_since: datetime | None
    access_cutoff: int | None
    acts: list[ExportedAct]


class ReplayHead(Struct, frozen=True):
    """The stored fields of a replay, without its body."""

    id: Id
    received_at: datetime
    listed: bool
    held: Annotated[bool, Meta(description="whether an operator keeps it unlisted")]


class ExportedReplay(ReplayHead, frozen=True):
    """A replay, with the body byte for byte as uploaded."""

    body: RawObject


class ExportedEvent(Struct, frozen=True):
    """An analytics event that names the player, with the payload byte for byte as sent."""

    id: Id
    received_at: datetime
    client_time: datetime
    session_id: str
    name: str
    event_type: str
    payload: Annotated[Raw, Meta(description="any JSON")]


class ExportedHappening(Struct, frozen=True):
    """An event of the account."""

    at: datetime
    event: str
    reason: str | None
    client: Annotated[str | None, Meta(description="address of the client (of IPv6 the /64); null for a command")]
    times: Annotated[int, Meta(description="number of such events within a moment")]


class ExportedGame(CountedGame, frozen=True):
    """A game that was sent by its id, with what it has added to the progress."""

    counted_at: datetime


class Exported(Struct, frozen=True, kw_only=True):
    """Everything that is stored about a player; `progress` is JSON as it is stored."""

    exported_at: datetime
    account: ExportedAccount
    avatar: ExportedAvatar | None
    progress: Payload | None
    leaderboard: ExportedEntry | None
    sessions: list[ExportedSession]
    recovery_codes: CodesLeft
    moderation: ExportedModeration
    replays: list[ExportedReplay]
    analytics: list[ExportedEvent]
    history: list[ExportedHappening]
    games: list[ExportedGame]


class StoredReplay(NamedTuple):
    """An ExportedReplay before encoding."""

    head: ReplayHead
    body: bytes

    def parts(self) -> tuple[bytes, ...]:
        """The replay as JSON, in parts, which saves a copy of a large body."""
        return _encode(self.head)[:-1], b',"body":', self.body, b"}"


class StoredAvatar(NamedTuple):
    """An ExportedAvatar before encoding."""

    extension: str
    base64: str


def opening(exported_at: datetime, account: ExportedAccount) -> bytes:
    """The beginning of the document, up to the avatar."""
    return b"".join((b'{"exported_at":', _encode(exported_at), b',\n"account":', _encode(account), b',\n"avatar":'))


def avatar(stored: StoredAvatar | None) -> bytes:
    """An avatar as JSON, or null; base64 has no characters that JSON escapes."""
    if stored is None:
        return b"null"
    content_type = _encode(media_type(stored.extension))
    return b"".join((b'{"content_type":', content_type, b',"base64":"', stored.base64.encode("ascii"), b'"}'))


def middle(
    leaderboard: ExportedEntry | None,
    sessions: list[ExportedSession],
    codes: CodesLeft,
    moderation: ExportedModeration,
) -> bytes:
    """The document between the progress and the first replay."""
    parts = {b"leaderboard": leaderboard, b"sessions": sessions, b"recovery_codes": codes, b"moderation": moderation}
    return b"".join(b',\n"%b":%b' % (name, _encode(part)) for name, part in parts.items()) + b',\n"replays":['


def joined(records: Sequence[StoredReplay | ExportedEvent | ExportedHappening | ExportedGame], *, first: bool) -> bytes:
    """Records joined by separators; with `first`, no separator comes before them."""
    parts: list[bytes] = []
    for record in records:
        parts += SEPARATOR, *(record.parts() if isinstance(record, StoredReplay) else (_encode(record),))
    return b"".join(parts[first:])


def filename(username: str | None) -> str:
    """The name under which a browser saves the document."""
    safe = "".join(each if each.isascii() and each.isalnum() else "_" for each in username or "")
    return f"solisync-{safe}.json"
