"""Numbers of clients that have doubles alone: 95.0 is an integer, and null in a push may mean never (docs/sync.md)."""

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw

from .surrogates import escape_surrogates, restore_surrogates
from .sync import MODE_TIMES, NEVER, NEVER_ROUNDED, Unknown

_NEVER = {"fastest_win_seconds": Raw(str(NEVER).encode())} | dict.fromkeys(MODE_TIMES, Raw(b"0"))
_TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_EXTREME = re.compile(rb"[eE][+-]?(?:2[3-9]|[3-9][0-9]|[0-9]{3})")  # an exponent that no field takes

_read_fields = msgspec.json.Decoder(Unknown).decode
_decode_numbers = msgspec.json.Decoder(int | float | list[int | float] | dict[str, int | float]).decode
_encode = msgspec.json.Encoder().encode


def with_integers(body: bytes) -> bytes | None:
    """Replace whole numbers in `stats` and `progress` by integers, and null by NEVER where it means that.

    None if the body isn't an object of objects. JavaScript writes Infinity as null.
    """
    try:
        payload = _read_fields(escape_surrogates(body))
        for part in payload.keys() & {"stats", "progress"}:
            fields = _read_fields(payload[part])
            for name, raw in fields.items():
                fields[name] = _NEVER.get(name, raw) if bytes(raw) == b"null" else _with_integers(raw)
            payload[part] = Raw(_encode(fields))
    except (msgspec.DecodeError, RecursionError):
        return None
    return restore_surrogates(_encode(payload))


def with_integers_in(text: bytes, names: Iterable[str]) -> bytes:
    """Replace whole numbers in these fields of an object by integers; raises DecodeError for anything but an object."""
    fields = _read_fields(text)
    return _encode(fields | {name: _with_integers(fields[name]) for name in names if name in fields})


def _with_integers(raw: Raw) -> Raw:
    """Replace whole numbers by integers, in a field's value.

    Numbers that no field takes stay as they are: msgspec takes 10 µs for 1e308, which as an integer would have 309
    digits, and 1e23 takes twice as long as 1e22, because it is halfway between two doubles.
    """
    if not _EXTREME.search(_TEXTS.sub(b"", bytes(raw))):
        with suppress(msgspec.ValidationError):
            return Raw(json.dumps(_whole(_decode_numbers(raw))).encode())
    return raw


def _whole(value: Any) -> Any:
    match value:
        case list():
            return [*map(_integer, value)]
        case dict():
            return {name: _integer(number) for name, number in value.items()}
    return _integer(value)


def _integer(number: float) -> float:
    return int(number) if type(number) is float and number.is_integer() and abs(number) <= NEVER_ROUNDED[-1] else number
