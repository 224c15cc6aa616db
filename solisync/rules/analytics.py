r"""Analytics: message shapes, and the validation of events (docs/protocol.md "Analytics").

Events are validated one by one, so that an invalid event doesn't reject its batch. A batch is therefore decoded with
its events as raw JSON. msgspec would refuse the whole batch for one half of a surrogate pair. So each half is first
replaced with U+0000, which makes only its event invalid.
"""

import re
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct

from ..errors import BadRequest
from .json_body import read_json
from .shapes import NO_OFFSET, Checked, Id, SpelledTime, Time, canonical_uuid
from .surrogates import without_lone_surrogates

EVENTS_MAX = 50
PAYLOAD_MAX_BYTES = 4_096
AHEAD_MAX = timedelta(hours=24)

# the pattern is for the OpenAPI document alone: `validate` checks it, with error texts for developers
Name = Annotated[str, Meta(min_length=1, max_length=64, extra_json_schema={"pattern": r"^[^\x00]+$"})]

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_NO_TEXT = "must not contain U+0000 or half of a surrogate pair"


class AnalyticsEvent(Checked, frozen=True, kw_only=True):
    """An event of a game; the client makes the id, and the server stores each id once."""

    id: Id
    # "$" alone would accept a newline after the name
    event_type: Annotated[str, Meta(pattern=r"^[a-z_][a-z0-9_]{0,63}$(?!\n)", examples=["game_won"])]
    # a factory, because msgspec can't put a default of type Raw into a JSON Schema
    payload: Annotated[Raw, Meta(description=f"any JSON of at most {PAYLOAD_MAX_BYTES} bytes, {{}} when absent")] = (
        msgspec.field(default_factory=lambda: Raw(b"{}"))
    )
    client_time: Annotated[Time, Meta(description="at most 24 hours ahead of the server")]

    def __post_init__(self) -> None:
        super().__post_init__()
        canonical = canonical_uuid(self.id)
        if canonical is None:
            raise ValueError("`id` must be a UUID")
        msgspec.structs.force_setattr(self, "id", canonical)
        if len(bytes(self.payload)) > PAYLOAD_MAX_BYTES:
            raise ValueError(f"`payload` must be at most {PAYLOAD_MAX_BYTES} bytes of JSON")


class Batch(Struct, frozen=True, kw_only=True):
    """Events of one visit; `user_id` is the player's id or username, or null for anonymous events."""

    session_id: Name
    user_id: Name | None = None
    events: Annotated[list[AnalyticsEvent], Meta(max_length=EVENTS_MAX)]


class UndecodedBatch(Struct, frozen=True, kw_only=True):
    """A batch whose events are still raw JSON."""

    session_id: Name
    user_id: Name | None = None
    events: list[Raw]


class Rejected(Struct, frozen=True):
    """An event that was not stored: its index in the batch, counted from 0, and the reason."""

    index: int
    error: str


class Receipt(Struct, frozen=True, kw_only=True):
    """The result of a batch: `duplicates` of the accepted events were already stored."""

    ok: bool = True
    accepted: int
    duplicates: int
    rejected: list[Rejected]


class ValidatedBatch(NamedTuple):
    """The result of `validate`: `events` has each accepted id once, `accepted` counts repeated ones too."""

    session_id: str
    name: str | None
    events: list[AnalyticsEvent]
    accepted: int
    rejected: list[Rejected]


def read_batch(body: bytes) -> UndecodedBatch:
    """Decode a batch except for its events; raises BadRequest."""
    return read_json(splittable(body), UndecodedBatch)


def splittable(body: bytes) -> bytes:
    """Replace each half of a surrogate pair with U+0000, so that the body can be decoded as an UndecodedBatch."""
    return without_lone_surrogates(body, instead=b"\\u0000")


def validate(sent: UndecodedBatch, now: datetime) -> ValidatedBatch:
    """Validate every event of a batch; raises BadRequest if the batch as a whole breaks a rule."""
    if len(sent.events) > EVENTS_MAX:
        raise BadRequest("batch_too_large", f"batch may contain at most {EVENTS_MAX} events")
    for field in ("session_id", "user_id"):
        if "\0" in (getattr(sent, field) or ""):
            raise BadRequest("bad_field", f"`{field}` {_NO_TEXT}")
    accepted, rejected = [], []
    for index, raw in enumerate(sent.events):
        try:
            accepted.append(_read_event(bytes(raw), now))
        except ValueError as error:
            rejected.append(Rejected(index, str(error)))
    return ValidatedBatch(
        session_id=sent.session_id,
        name=name_of(sent.user_id),
        events=list({event.id: event for event in reversed(accepted)}.values()),  # of equal ids, the first counts
        accepted=len(accepted),
        rejected=rejected,
    )


def _read_event(raw: bytes, now: datetime) -> AnalyticsEvent:
    if contains_nul(raw):
        raise ValueError(f"event {_NO_TEXT}")
    event = _decode(raw)
    try:
        _decode_spelling(raw)
    except msgspec.ValidationError:
        raise ValueError(f"`client_time`: {NO_OFFSET}") from None
    if event.client_time - now > AHEAD_MAX:
        raise ValueError("`client_time` is more than 24 hours ahead")
    return event


def contains_nul(json: bytes) -> bool:
    """Return whether a string in valid JSON contains U+0000, which JSON can only spell as an escape."""
    return b"\\u0000" in json and _NUL.search(json) is not None


def name_of(user_id: str | None) -> str | None:
    """The name under which events are stored: trimmed, and a UUID in canonical form, so that erasure finds it."""
    name = (user_id or "").strip()
    return canonical_uuid(name) or name or None


def names_of_rename(former: str, username: str) -> tuple[str | None, str | None, str | None, str | None]:
    """The former username as events have it, and the id that it spells, if any; then the same of the new username."""
    return name_of(former), canonical_uuid(former), name_of(username), canonical_uuid(username)


class _Spelling(Struct, frozen=True):
    client_time: SpelledTime


_decode = msgspec.json.Decoder(AnalyticsEvent).decode
_decode_spelling = msgspec.json.Decoder(_Spelling).decode
