"""Documents that are not pushed: the default one, and those read back from storage."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from .fields import EPOCH, U64_MAX
from .pushed import read_fields, read_known, read_unknown
from .surrogates import decode, without_lone_surrogates
from .sync import NEVER, NO_UNKNOWN_FIELDS, Achievement, Document, Payload, Progress, Stats, Unknown

_stats_facts, _progress_facts = (
    attrgetter(*(field.name for field in structs.fields(shape) if field.name != "last_modified"))
    for shape in (Stats, Progress)
)
_encode = msgspec.json.Encoder().encode


def default_document(user_id: str, now: datetime) -> Document:
    """The document of a player who never pushed (docs/sync.md "Never pushed")."""
    payload = Payload(
        user_id=user_id, stats=_default_stats(), achievements=[], progress=_default_progress(), last_modified=now
    )
    return Document(payload, NO_UNKNOWN_FIELDS)


def revision(stored: bytes) -> str:
    """What tells this stored document from every other one (docs/live.md)."""
    return sha256(stored).hexdigest()[:32]


def is_news(merged: Document, stored: Document | None) -> bool:
    """Whether a merged document has more than new times, and the form of the id, that the one before had not.

    Each push changes the times: two devices that push whenever the other has would never end if these were news.
    """
    if stored is None:
        return True
    new, old = merged.payload, stored.payload
    return (
        _stats_facts(new.stats) != _stats_facts(old.stats)
        or _progress_facts(new.progress) != _progress_facts(old.progress)
        or merged.unknown_fields != stored.unknown_fields
        # shapes of two classes are never equal
        or (new.achievements != old.achievements and _all_facts(new.achievements) != _all_facts(old.achievements))
    )


def _all_facts(shapes: Sequence[Struct]) -> list[tuple[Any, ...]]:
    return [*map(structs.astuple, shapes)]


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
