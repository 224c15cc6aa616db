"""Progress as a device pushed it, in all the spellings that clients have (docs/sync.md "The payload").

`read_pushed` makes these passes over the text, and hardly ever more than the first:

| The text has | Pass | Cost, in decodings | Sent by |
|---|---|---|---|
| what the shapes have, and no more | `read_known` | 1 | games of this version |
| fields that are unknown here | `read_json`, `read_unknown` | 3 more | games of a newer version |
| halves of surrogate pairs in such fields | `surrogates.decode`, `sealed` | 2 to 6 more | programs that keep UTF-16 |
| whole numbers as 95.0 | `_with_integers`, then `read_json` | 3 more | clients whose numbers are doubles |
| an escape, or a time whose offset has no colon | `_check_times` | 1 more; the latter is refused | no known client |

What no pass can read is refused, with the path of the first field that is wrong.
"""

import json
import re
from contextlib import suppress
from datetime import UTC
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from ..errors import BadRequest
from .fields import NO_OFFSET, SpelledTime, Time
from .json_body import read_json
from .surrogates import decode, sealed, unsealed
from .sync import NO_UNKNOWN_FIELDS, Achievement, Document, Key, Payload, Progress, Stats, Unknown, UnknownFields

Number = int | float

_NO_COLON = re.compile(rb':[0-9]{2}(?:\.[0-9]+)?[+-][0-9]{4}"')


class Pushed(NamedTuple):
    """What a device pushed, and in how many bytes."""

    document: Document
    size: int


def read_pushed(body: bytes) -> Pushed:
    """Decode what a device pushed; raises BadRequest with the path of the field that is wrong."""
    document = read_known(body)
    if document is None:
        try:
            payload = read_json(body, Payload)
        except BadRequest as error:
            spelled = _with_integers(body) if error.code == "bad_field" else None
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
    """An Achievement, unchecked: there are many of them, and `read_known` looks for what would have to be converted."""

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
    """The fields of a valid payload that its shapes do not have; raises DecodeError for a name that is no text."""
    payload = read_fields(sealed(raw))
    achievements: dict[str, Unknown] = {}
    for record in _decode_records(payload["achievements"]):
        unknown = _without(record, Achievement)
        if unknown:
            name = _decode_text(unsealed(bytes(record["id"])))
            achievements.setdefault(name, {}).update(unknown)
    return UnknownFields(
        stats=_without(read_fields(payload["stats"]), Stats),
        progress=_without(read_fields(payload["progress"]), Progress),
        achievements=achievements,
        payload=_without(payload, Payload),
    )


def _without(fields: Unknown, shape: type[Struct]) -> Unknown:
    """The fields that a shape does not have, of a sealed document."""
    known = shape.__struct_fields__
    return {
        _decode_text(unsealed(_encode(name))) if "\0" in name else name: Raw(unsealed(bytes(value)))
        for name, value in fields.items()
        if name not in known
    }


def _with_integers(body: bytes) -> bytes | None:
    """The body with each whole number of its `stats` and `progress`, and of the lists in these, as an integer.

    None for anything else than an object of objects.
    """
    try:
        payload = read_fields(body)
        for part in payload.keys() & {"stats", "progress"}:
            fields = read_fields(payload[part])
            for name, raw in fields.items():
                with suppress(msgspec.ValidationError):
                    fields[name] = Raw(json.dumps(_whole(_decode_numbers(raw))).encode())
            payload[part] = Raw(_encode(fields))
    except (msgspec.DecodeError, RecursionError):
        return None
    return _encode(payload)


def _whole(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_whole(each) for each in value]
        case dict():
            return {name: _whole(each) for name, each in value.items()}
    return value


class _Times(Struct, frozen=True):
    last_modified: SpelledTime


class _Unlock(Struct, frozen=True):
    unlock_date: SpelledTime | None


class _PayloadTimes(_Times, frozen=True, kw_only=True):
    stats: _Times
    achievements: list[_Unlock]
    progress: _Times


def _check_times(body: bytes) -> None:
    # Fast path: what looks as if it could be wrong is decoded once more, instead of each body, see docs/performance.md
    if b"\\" not in body and _NO_COLON.search(body) is None:
        return
    try:
        decode(body, _PayloadTimes)
    except msgspec.ValidationError as error:
        path = str(error).rpartition(" - at ")[2]
        raise BadRequest("bad_field", f"request body: {NO_OFFSET} - at {path}") from None


read_fields = msgspec.json.Decoder(Unknown).decode
_decode_known = msgspec.json.Decoder(_KnownPayload).decode
_decode_numbers = msgspec.json.Decoder(Number | list[Number] | dict[str, Number]).decode
_decode_records = msgspec.json.Decoder(list[Unknown]).decode
_decode_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode
