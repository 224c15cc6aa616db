"""Validation of values in SQLite rows, whose columns may have any type; each function raises Unusable."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec
from msgspec import Raw

from ..rules.shapes import SpelledTime, Time, is_id
from ..rules.surrogates import without_surrogates

Row = Mapping[str, Any]  # invalid UTF-8 becomes lone surrogates

_decode_raw = msgspec.json.Decoder(Raw).decode


class Unusable(ValueError):
    """The reason why a row can't be imported."""


class Unread(Enum):
    """The placeholders of values that were not read."""

    TOO_LARGE = "too large"


def text(row: Row, column: str) -> str:
    """Text that PostgreSQL can hold."""
    value = row[column]
    if value is None:
        raise Unusable(f"{column} is missing")
    if value is Unread.TOO_LARGE:
        raise Unusable(f"{column} is too large")
    try:
        if isinstance(value, str) and "\0" not in value:
            value.encode()
            return value
    except UnicodeEncodeError:
        pass
    raise Unusable(f"{column} is not text")


def uuid(row: Row, column: str) -> str:
    """A UUID in canonical spelling, as the original server writes all of them."""
    value = text(row, column)
    if not is_id(value):
        raise Unusable(f"{column} is not a UUID in lower case")
    return value


def time(row: Row, column: str) -> datetime:
    """A time in UTC."""
    spelled = text(row, column)
    try:
        msgspec.convert(spelled, SpelledTime)
        return msgspec.convert(spelled, Time).astimezone(UTC)
    except (msgspec.ValidationError, OverflowError):
        raise Unusable(f"{column} is not a time of the years 1 to 9999 in RFC 3339") from None


def json(row: Row, column: str) -> bytes:
    """A single JSON value, which can't break other JSON that contains it."""
    value = text(row, column).encode()
    try:
        _decode_raw(without_surrogates(value, digit=b"f"))
    except (msgspec.DecodeError, RecursionError):
        raise Unusable(f"{column} is not JSON") from None
    return value
