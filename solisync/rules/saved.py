"""Documents that are not pushed: the default one, and those read back from storage."""

from datetime import datetime

import msgspec
from msgspec import Raw, Struct, structs

from .fields import EPOCH, U64_MAX
from .pushed import read_fields, read_known, read_unknown
from .surrogates import decode, without_lone_surrogates
from .sync import NEVER, NO_UNKNOWN_FIELDS, Achievement, Document, Payload, Progress, Stats, Unknown

_encode = msgspec.json.Encoder().encode


def default_document(user_id: str, now: datetime) -> Document:
    """The document of a player who never pushed (docs/sync.md "Never pushed")."""
    payload = Payload(
        user_id=user_id, stats=_default_stats(), achievements=[], progress=_default_progress(), last_modified=now
    )
    return Document(payload, NO_UNKNOWN_FIELDS)


def read_saved(raw: bytes) -> Document:
    """A stored document.

    An older version may have stored it, to which some fields of today were unknown, so that it didn't check them: a
    value that doesn't fit such a field counts as absent.
    """
    return read_known(raw) or Document(_read_payload(raw), read_unknown(raw))


def _read_payload(raw: bytes) -> Payload:
    try:
        return decode(raw, Payload)
    except msgspec.DecodeError:
        return decode(_repaired(without_lone_surrogates(raw, instead=rb"\ufffd")), Payload)


def _repaired(raw: bytes) -> bytes:
    document = read_fields(raw)
    records = msgspec.json.decode(document["achievements"], type=list[Unknown])
    locked = Achievement(id="", unlocked=False, unlock_date=None, reward_granted=False)
    document["stats"] = _fitting(read_fields(document["stats"]), _default_stats())
    document["progress"] = _fitting(read_fields(document["progress"]), _default_progress())
    document["achievements"] = Raw(_encode([_fitting(record, locked) for record in records]))
    return _encode(document)


def _fitting(fields: Unknown, default: Struct) -> Raw:
    """The fields of the shape of `default`, with its value for those that are absent or don't fit."""
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
