"""Rows of an original server's database as values of this service (docs/moving-in.md).

Each function raises Unusable, with the reason, for a row that can't be imported.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime
from enum import Enum
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, structs

from ..errors import BadRequest
from ..rules.accounts import check_username
from ..rules.analytics import AnalyticsEvent, UndecodedBatch, splittable, validate
from ..rules.avatars import FORMATS, check_avatar, media_type
from ..rules.challenge import daily_challenge
from ..rules.documents import read_pushed, read_stored
from ..rules.json_body import read_json
from ..rules.leaderboard import Bests
from ..rules.merge import merge
from ..rules.replays import Fields, ReceivedReplay, decodable
from ..rules.shapes import EPOCH, MAX_BODY
from ..rules.sync import Document
from . import sqlite_values as cells
from .replacements import OddCells
from .sqlite_values import Row, Unusable

# bcrypt as Python's library reads it: the last of a salt's 22 characters has two bits. Costs above 14 take seconds.
_HASH = re.compile(r"\$2[aby]\$(?:0[4-9]|1[0-4])\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")
_AVATAR = re.compile(rf"/avatars/(?P<owner>[^/]+)\.(?P<extension>{'|'.join(image.extension for image in FORMATS)})")

_encode = msgspec.json.Encoder().encode


class Fate(Enum):
    """The fate of a player of the file."""

    NEW = "new"
    PRESENT = "present"
    DELETED = "deleted"  # here, since an import
    TAKEN = "taken"  # another player has the name


class User(NamedTuple):
    """A player; the hash is of the first 72 bytes of the password."""

    id: str
    username: str
    password_hash: str
    created_at: datetime


class OriginalProgress(NamedTuple):
    """A player's progress, as a pull there would return it."""

    user_id: str
    document: Document


class OriginalEntry(NamedTuple):
    """A player's entry on the leaderboard."""

    user_id: str
    display_name: str
    bests: Bests
    recorded_at: datetime
    visible: bool


class OriginalReplay(NamedTuple):
    """A replay, which downloads return byte for byte."""

    id: str
    user_id: str
    received_at: datetime
    replay: ReceivedReplay


class LiveToken(NamedTuple):
    """The record of an unspent refresh token."""

    id: str
    user_id: str
    expires_at: datetime


class ReportedEvent(NamedTuple):
    """An analytics event."""

    session_id: str
    name: str | None
    event: AnalyticsEvent
    received_at: datetime


class Image(NamedTuple):
    """A player's avatar."""

    user_id: str
    extension: str
    image: bytes


def fate(*, exists: bool, noted: bool, name_taken: bool) -> Fate:
    """The fate of a player: does the player exist, did an import note the player, does another one have the name?"""
    if exists:
        return Fate.PRESENT
    if noted:
        return Fate.DELETED
    return Fate.TAKEN if name_taken else Fate.NEW


def read_user(row: Row) -> User:
    """Read a row of `users`."""
    username = cells.text(row, "username")
    try:
        if check_username(username) != username:
            raise Unusable("username begins or ends with white space")
    except BadRequest as error:
        raise Unusable(str(error)) from None
    password_hash = cells.text(row, "password_hash")
    if not _HASH.fullmatch(password_hash):
        raise Unusable("password_hash is not a bcrypt hash of a cost from 4 to 14")
    return User(cells.uuid(row, "id"), username, password_hash, cells.time(row, "created_at"))


def read_progress(row: Row) -> OriginalProgress:
    """Read a row of `sync_state`: set the player's id in it, and check only the bounds of each field."""
    user_id = cells.uuid(row, "user_id")
    parts = {part: Raw(cells.json(row, f"{part}_json")) for part in ("stats", "achievements", "progress")}
    body = _encode({"user_id": user_id, **parts, "last_modified": cells.time(row, "last_modified")})
    try:
        return OriginalProgress(user_id, read_pushed(body).document)
    except BadRequest as error:
        raise Unusable(str(error).removeprefix("request body: ")) from None


def merged(stored: bytes | None, document: Document, now: datetime) -> bytes | None:
    """Return the document to store in place of `stored`, or None if `stored` has everything already.

    In doubt the stored value stays, so the merge treats it as the pushed one. Without `stored`, the document is stored
    unchanged.
    """
    if stored is None:
        return document.encode()
    here = read_stored(stored)
    if _undated(here) == _undated(document):
        return None
    both, _ = merge(here, document, now)
    return None if _undated(both) == _undated(here) else both.encode()


def newest_classics(replays: Iterable[Row]) -> dict[object, datetime]:
    """The time of receipt of each player's newest replay of mode Classic, from rows of `replays`."""
    newest: dict[object, datetime] = {}
    for row in replays:
        if row["mode"] == "Classic":
            with suppress(Unusable):
                received_at, player = cells.time(row, "received_at"), row["user_id"]
                newest[player] = max(received_at, newest.get(player, received_at))
    return newest


def read_entry(row: Row, newest_classic: datetime | None, now: datetime) -> tuple[OriginalEntry, list[str]]:
    """Read a row of `leaderboard` with its player's name and opt-in; also return warnings about replaced cells."""
    odd = OddCells(row, now)
    entry = OriginalEntry(
        user_id=cells.uuid(row, "user_id"),
        display_name=odd.display_name(),
        bests=odd.bests(),
        recorded_at=odd.recorded_at(newest_classic),
        visible=row["leaderboard_opt_in"] == 1,
    )
    return entry, odd.warnings


def read_stored_replay(row: Row, now: datetime) -> tuple[OriginalReplay, list[str]]:
    """Read a row of `replays`, whose text alone counts, as in an upload; also return warnings about replaced cells."""
    odd = OddCells(row, now)
    body = cells.text(row, "replay_json").encode()
    if len(body) > MAX_BODY:
        raise Unusable("replay_json is larger than 1 MiB")
    received_at = odd.received_at()
    try:
        header = odd.header(read_json(decodable(body), Fields), received_at)
    except BadRequest as error:
        raise Unusable(str(error).replace("request body", "replay_json")) from None
    replay = ReceivedReplay(body, header, digest=None)  # the original server keeps no `game_id`
    return OriginalReplay(cells.uuid(row, "id"), cells.uuid(row, "user_id"), received_at, replay), odd.warnings


def read_token(row: Row) -> LiveToken:
    """Read a row of `refresh_tokens`."""
    return LiveToken(cells.uuid(row, "jti"), cells.uuid(row, "user_id"), cells.time(row, "expires_at"))


def read_event(row: Row) -> ReportedEvent:
    """Read a row of `analytics_events`, by the rules for a report received at that time."""
    received_at = cells.time(row, "received_at")
    event = {
        "id": cells.text(row, "id"),
        "event_type": cells.text(row, "event_type"),
        "payload": Raw(splittable(cells.json(row, "payload"))),
        "client_time": cells.text(row, "client_time"),
    }
    session_id, name = cells.text(row, "session_id"), None if row["user_id"] is None else cells.text(row, "user_id")
    for column, text in (("session_id", session_id), ("user_id", name)):
        if text is not None and len(text) not in range(1, 65):
            raise Unusable(f"{column} must have 1 to 64 characters")
    batch = validate(UndecodedBatch(session_id=session_id, user_id=name, events=[Raw(_encode(event))]), received_at)
    if batch.rejected:
        raise Unusable(batch.rejected[0].error)
    return ReportedEvent(batch.session_id, batch.name, batch.events[0], received_at)


def avatar_extension(row: Row) -> str:
    """Return the extension of a player's avatar, from a row of `users` with an `avatar_url`."""
    found = _AVATAR.fullmatch(cells.text(row, "avatar_url"))
    if found is None or found["owner"] != row["id"]:
        raise Unusable("avatar_url is not /avatars/<id>.<jpg, png, webp or gif>")
    return found["extension"]


def check_image(extension: str, image: bytes) -> None:
    """Raise Unusable unless the image fits its extension, and isn't too large."""
    try:
        check_avatar(media_type(extension) or "", image)
    except BadRequest as error:
        raise Unusable(str(error)) from None


def challenge_difference(row: Row) -> str | None:
    """The difference between a row of `daily_challenges` and that day's challenge here, or None if they are equal."""
    try:
        challenge = daily_challenge(msgspec.convert(cells.text(row, "date"), date))
        goal = msgspec.json.decode(cells.json(row, "goal_json"), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return "date is not a date, or goal_json is not an object"
    except Unusable as error:
        return str(error)
    seed = row["seed"] % 2**64 if isinstance(row["seed"], int) else row["seed"]
    if seed != challenge.seed:
        return f"the seed there is {seed!r:.64}, here {challenge.seed}"
    here = structs.asdict(challenge)
    for field in ("target_score", "max_time_secs"):  # the description is worded differently there
        if goal.get(field, here[field]) != here[field]:
            return f"{field} there is {goal[field]!r:.64}, here {here[field]!r}"
    return None


def _undated(document: Document) -> bytes:
    """The document without its times and its owner, which a merge always changes."""
    payload = structs.replace(
        document.payload,
        user_id="",
        stats=structs.replace(document.payload.stats, last_modified=EPOCH),
        progress=structs.replace(document.payload.progress, last_modified=EPOCH),
        last_modified=EPOCH,
    )
    return document._replace(payload=payload).encode()
