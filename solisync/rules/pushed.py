"""Progress as a device pushed it, in all the spellings that clients have (docs/sync.md "The payload")."""

import re
from typing import NamedTuple

import msgspec
from msgspec import Struct

from ..errors import BadRequest
from .doubles import with_integers
from .fields import NO_OFFSET, SpelledTime
from .json_body import decode, read_json
from .sync import Document, Payload, read_known, read_unknown

_NO_COLON = re.compile(rb':[0-9]{2}(?:\.[0-9]+)?[+-][0-9]{4}"')


class Pushed(NamedTuple):
    """What a device pushed, and in how many bytes."""

    document: Document
    size: int


def read_push(body: bytes) -> Pushed:
    """Decode the body of a push; raises BadRequest with the path of the field that is wrong."""
    return Pushed(read_pushed(body), len(body))


def read_pushed(body: bytes) -> Document:
    """Decode what a device pushed; raises BadRequest with the path of the field that is wrong."""
    document = read_known(body)
    if document is None:
        payload = _read_payload(body)
        try:
            document = Document(payload, read_unknown(body))
        except msgspec.DecodeError as error:
            raise BadRequest("bad_field", f"request body: name of a field: {error}") from None
    _check_times(body)
    return document


def _read_payload(body: bytes) -> Payload:
    try:
        return read_json(body, Payload)
    except BadRequest as error:
        if error.code != "bad_field":
            raise
        try:
            spelled = with_integers(body, "stats", "progress")
        except (msgspec.DecodeError, RecursionError):
            raise error from None
        return read_json(spelled, Payload)


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
