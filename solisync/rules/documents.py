"""Documents of progress: reading pushed ones and stored ones, and making the default one.

Devices push several spellings (docs/sync.md "The payload"). `read_pushed` makes these passes over the text, and rarely
more than the first:

| The text has | Pass | Cost, in decodings | Sent by |
|---|---|---|---|
| what the shapes have, and no more | `read_known` | 1 | games of this version |
| fields that are unknown here | `read_json`, `read_unknown` | 3 more | games of a newer version |
| halves of surrogate pairs in these | `decode`, `escape_surrogates` | 2 to 6 more | programs that keep UTF-16 |
| whole numbers as 95.0, never as null | `with_integers`, then `read_json` | 3 more | programs with doubles alone |
| an escape, or a time whose offset has no colon | `_check_times` | 1 more; the latter is refused | no known client |

If no pass can read the text, it is refused with the path of the first wrong field.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct, structs

from ..errors import BadRequest
from .doubles import with_integers
from .json_body import read_json
from .shapes import EPOCH, NO_OFFSET, U64_MAX, SpelledTime, Time, may_lack_colon
from .surrogates import decode, escape_surrogates, restore_surrogates, without_lone_surrogates
from .sync import (
    NEVER,
    NO_UNKNOWN_FIELDS,
    Achievement,
    Document,
    Key,
    Payload,
    Progress,
    Stats,
    Unknown,
    UnknownFields,
)


class Pushed(NamedTuple):
    """A pushed document, and its size in bytes."""

    document: Document
    size: int


def read_pushed(body: bytes) -> Pushed:
    """Decode a pushed document; raises BadRequest with the path of the wrong field."""
    document = read_known(body)
    if document is None:
        try:
            payload = read_json(body, Payload)
        except BadRequest as error:
            spelled = with_integers(body) if error.code == "bad_field" else None
            if spelled is None:
                raise
            payload = read_json(spelled, Payload)
        try:
            document = Document(payload, read_unknown(body))
        except msgspec.DecodeError as error:
            raise BadRequest("bad_field", f"request body: name of a field: {error}") from None
    _check_times(body)
    return Pushed(document, len(body))


class _KnownStats(Stats, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _KnownAchievement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An unchecked Achievement: there are many of them, and `read_known` itself checks their times."""

    id: Key
    unlocked: bool
    unlock_date: Time | None
    reward_granted: bool


class _KnownProgress(Progress, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _KnownPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    stats: _KnownStats
    achievements: list[_KnownAchievement]  # type: ignore[assignment]
    progress: _KnownProgress


def read_known(raw: bytes) -> Document | None:
    """Decode a valid payload without unknown fields; None for anything else.

    Fast path: replaces `read_json` and `read_unknown` for nearly all payloads, a third of the instructions of a push,
    see docs/performance.md.
    """
    try:
        payload = _decode_known(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    for record in payload.achievements:
        unlocked = record.unlock_date
        if unlocked is not None and unlocked.tzinfo is not UTC:
            return None
    return Document(payload, NO_UNKNOWN_FIELDS)


def read_unknown(raw: bytes) -> UnknownFields:
    """The fields of a valid payload that its shapes lack; raises DecodeError for a field name that isn't valid text."""
    payload = _read_fields(escape_surrogates(raw))
    achievements: dict[str, Unknown] = {}
    for record in _decode_records(payload["achievements"]):
        unknown = _without(record, Achievement)
        if unknown:
            name = _decode_text(restore_surrogates(bytes(record["id"])))
            achievements.setdefault(name, {}).update(unknown)
    return UnknownFields(
        stats=_without(_read_fields(payload["stats"]), Stats),
        progress=_without(_read_fields(payload["progress"]), Progress),
        achievements=achievements,
        payload=_without(payload, Payload),
    )


def _without(fields: Unknown, shape: type[Struct]) -> Unknown:
    """The fields that a shape lacks, from a document whose surrogates are escaped."""
    known = shape.__struct_fields__
    return {
        _decode_text(restore_surrogates(_encode(name))) if "\0" in name else name: Raw(restore_surrogates(bytes(value)))
        for name, value in fields.items()
        if name not in known
    }


class _Times(Struct, frozen=True):
    last_modified: SpelledTime


class _Unlock(Struct, frozen=True):
    unlock_date: SpelledTime | None


class _PayloadTimes(_Times, frozen=True, kw_only=True):
    stats: _Times
    achievements: list[_Unlock]
    progress: _Times


def _check_times(body: bytes) -> None:
    if not may_lack_colon(body):
        return
    try:
        decode(body, _PayloadTimes)
    except msgspec.ValidationError as error:
        path = str(error).rpartition(" - at ")[2]
        raise BadRequest("bad_field", f"request body: {NO_OFFSET} - at {path}") from None


def default_document(user_id: str, now: datetime) -> Document:
    """The document of a player who has never pushed (docs/sync.md "Never pushed")."""
    payload = Payload(
        user_id=user_id, stats=_default_stats(), achievements=[], progress=_default_progress(), last_modified=now
    )
    return Document(payload, NO_UNKNOWN_FIELDS)


def revision(stored: bytes) -> str:
    """The revision of a stored document, which differs for every content (docs/live.md)."""
    return sha256(stored).hexdigest()[:32]


def is_news(merged: Document, stored: Document | None) -> bool:
    """Return whether a merged document differs from the one before in more than times and the form of the id.

    Every push changes the times. If these were news, two devices that each push after the other's push would never
    stop.
    """
    if stored is None:
        return True
    new, old = merged.payload, stored.payload
    return (
        _stats_facts(new.stats) != _stats_facts(old.stats)
        or _progress_facts(new.progress) != _progress_facts(old.progress)
        or merged.unknown_fields != stored.unknown_fields
        # Shapes of different classes are never equal.
        or (new.achievements != old.achievements and _all_facts(new.achievements) != _all_facts(old.achievements))
    )


def _all_facts(shapes: Sequence[Struct]) -> list[tuple[Any, ...]]:
    return [*map(structs.astuple, shapes)]


def read_stored(raw: bytes) -> Document:
    """Decode a stored document.

    An older version, which didn't know and check some of today's fields, may have stored it. A value that doesn't fit
    such a field counts as absent.
    """
    return read_known(raw) or Document(_stored_payload(raw), read_unknown(raw))


def _stored_payload(raw: bytes) -> Payload:
    try:
        return decode(raw, Payload)
    except msgspec.DecodeError:
        return decode(_repaired(without_lone_surrogates(raw, instead=rb"\ufffd")), Payload)


def _repaired(raw: bytes) -> bytes:
    document = _read_fields(raw)
    records = msgspec.json.decode(document["achievements"], type=list[Unknown])
    locked = Achievement(id="", unlocked=False, unlock_date=None, reward_granted=False)
    document["stats"] = _fitting(_read_fields(document["stats"]), _default_stats())
    document["progress"] = _fitting(_read_fields(document["progress"]), _default_progress())
    document["achievements"] = Raw(_encode([_fitting(record, locked) for record in records]))
    return _encode(document)


def _fitting(fields: Unknown, default: Struct) -> Raw:
    """The fields of the shape of `default`, with the default's value for fields that are absent or don't fit."""
    values = structs.asdict(default)
    for field in structs.fields(default):
        try:
            value = msgspec.json.decode(fields[field.name], type=field.type)
        except (KeyError, msgspec.ValidationError):
            continue
        if type(value) is not int or value <= U64_MAX:
            values[field.name] = value
    return Raw(_encode(values))


def _default_stats() -> Stats:
    zeros = {field.name: 0 for field in structs.fields(Stats)}
    return Stats(**zeros | {"fastest_win_seconds": NEVER, "last_modified": EPOCH})  # type: ignore[arg-type]


def _default_progress() -> Progress:
    return Progress(
        total_xp=0,
        level=0,
        daily_challenge_last_completed=None,
        daily_challenge_streak=0,
        weekly_goal_progress={},
        unlocked_card_backs=[0],
        unlocked_backgrounds=[0],
        last_modified=EPOCH,
    )


_read_fields = msgspec.json.Decoder(Unknown).decode
_decode_known = msgspec.json.Decoder(_KnownPayload).decode
_decode_records = msgspec.json.Decoder(list[Unknown]).decode
_decode_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode
_stats_facts, _progress_facts = (
    attrgetter(*(field.name for field in structs.fields(shape) if field.name != "last_modified"))
    for shape in (Stats, Progress)
)
