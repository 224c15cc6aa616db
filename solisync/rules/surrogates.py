r"""Halves of surrogate pairs in JSON, such as a lone "\ud800", which aren't characters (RFC 8259 §8.2).

msgspec refuses a whole body that has one anywhere.
"""

import re
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

# A half without its other half. Works only in text without escaped backslashes, where each "\u" begins an escape.
_LONE = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|[c-fC-F][0-9a-fA-F]{2}(?<!\\u[dD][89abAB]..\\u....))",
    re.DOTALL,
)
_ESCAPED_BACKSLASH, _PLACEHOLDER = b"\\\\", b"\0\0"  # valid JSON never contains the latter


def decode(json: bytes, shape: type[T]) -> T:
    """Decode JSON that may have halves of surrogate pairs outside of the fields of `shape`; raises msgspec's errors."""
    decode = _decoder(shape).decode  # type: ignore[arg-type]
    value: T
    try:
        value = decode(json)
    except msgspec.DecodeError as error:
        if isinstance(error, msgspec.ValidationError) or not has_surrogates(json):
            raise
        # msgspec refuses halves even in skipped fields. If the result is the same with two replacements, no field of
        # `shape` has a half.
        with suppress(msgspec.ValidationError):  # a field may be too long, because a pair becomes two characters
            value = decode(without_surrogates(json, digit=b"e"))
            if value == decode(without_surrogates(json, digit=b"f")):
                return value
        value = decode(without_lone_surrogates(json, instead=rb"\ufffd"))
        if value != decode(without_lone_surrogates(json, instead=rb"\ufffe")):
            raise
    return value


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)


def has_surrogates(json: bytes) -> bool:
    """Return whether the JSON may have an escape of a surrogate, alone or in a pair."""
    return rb"\ud" in json or rb"\uD" in json


def without_surrogates(json: bytes, *, digit: bytes) -> bytes:
    """Replace each surrogate with another character, U+Exxx or U+Fxxx by `digit`; the text keeps its length.

    Fast path: for text whose characters don't matter, a tenth of the time of `without_lone_surrogates`, see
    docs/performance.md.
    """
    return json.replace(rb"\ud", rb"\u" + digit).replace(rb"\uD", rb"\u" + digit)


def without_lone_surrogates(json: bytes, *, instead: bytes) -> bytes:
    """Replace each half of a surrogate pair with `instead`, an escape."""
    if not has_surrogates(json) or b"\0" in json:
        return json
    text = json.replace(_ESCAPED_BACKSLASH, _PLACEHOLDER)
    # Fast path: a constant replacement instead of a function, a third of the time, see docs/performance.md
    return _LONE.sub(instead.replace(b"\\", rb"\\"), text).replace(_PLACEHOLDER, _ESCAPED_BACKSLASH)


def escape_surrogates(json: bytes) -> bytes:
    r"""Replace escapes of surrogates so that `restore_surrogates` can restore the same bytes, even in parts.

    "\ud800" becomes "\u0000d800", which is U+0000 and four more characters; so "\u0000" becomes "\u00000000".
    """
    if rb"\u" not in json:
        return json
    text = json.replace(_ESCAPED_BACKSLASH, _PLACEHOLDER).replace(rb"\u0000", rb"\u00000000")
    text = text.replace(rb"\ud", rb"\u0000d").replace(rb"\uD", rb"\u0000D")
    return text.replace(_PLACEHOLDER, _ESCAPED_BACKSLASH)


def restore_surrogates(json: bytes) -> bytes:
    """Undo `escape_surrogates`."""
    if rb"\u0000" not in json:
        return json
    text = json.replace(_ESCAPED_BACKSLASH, _PLACEHOLDER).replace(rb"\u0000", rb"\u")
    return text.replace(_PLACEHOLDER, _ESCAPED_BACKSLASH)
