"""How the text of an argument becomes its value; each raises ArgumentTypeError for text that is none."""

import re
from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta

import msgspec

from ..access.client_address import bucket, parse_address
from ..rules.fields import Time

_AGO = re.compile(r"([0-9]{1,4})([mhdw])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def count(text: str) -> int:
    """A whole number."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ArgumentTypeError(f"must be a whole number, not {text!r}")
    return int(text)


def some(text: str) -> int:
    """A whole number from 1 on."""
    if not count(text):
        raise ArgumentTypeError("must be at least 1")
    return count(text)


def prefix(text: str) -> str:
    """What a username may begin with."""
    if not all(character.isascii() and (character.isalnum() or character == "_") for character in text):
        raise ArgumentTypeError(f"must be letters, digits and underscores, not {text!r}")
    return text


def client(text: str) -> str:
    """A client as rate limits count it, by one of its addresses."""
    address = parse_address(text)
    if address is None:
        raise ArgumentTypeError(f"must be an address, not {text!r}")
    return bucket(address)


def moment(text: str) -> datetime:
    """A time in UTC: a day or a time as such, today, yesterday, or how long ago, such as 7d."""
    now = datetime.now(UTC)
    if text in ("today", "yesterday"):
        return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=text == "yesterday")
    if ago := _AGO.fullmatch(text):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        if len(text) == len("2026-11-20"):
            text += "T00:00:00Z"
        moment = msgspec.convert(text, Time).astimezone(UTC)
    except (msgspec.ValidationError, OverflowError):
        moment = None
    if moment is None or not 1970 <= moment.year < 9999:
        raise ArgumentTypeError(f"must be like 2026-11-20, 2026-11-20T12:00:00Z, yesterday or 7d, not {text!r}")
    return moment
