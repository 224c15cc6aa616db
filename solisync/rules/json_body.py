"""Strict decoding of JSON bodies; docs/protocol.md "Common to all routes" has the rules."""

import re
from functools import cache
from typing import Any, TypeVar

import msgspec

from ..errors import BadRequest
from .escapes import has_surrogates, without_lone_surrogates, without_surrogates

MAX_NESTING = 64

T = TypeVar("T")

_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))
_AS_ARRAYS = bytes.maketrans(b"{}", b"[]")


def read_json(body: bytes, shape: type[T]) -> T:
    """Decode a body into `shape`; raises BadRequest with the path of the field that is wrong."""
    try:
        body.decode("utf-8")  # the whole body: msgspec skips the fields that `shape` does not have
        value = decode(body, shape)
    except UnicodeDecodeError:
        raise BadRequest("bad_json", "request body is not UTF-8") from None
    except msgspec.ValidationError as error:
        raise BadRequest("bad_field", f"request body: {error}") from None
    except msgspec.DecodeError as error:
        raise BadRequest("bad_json", f"request body is not valid JSON: {error}") from None
    except RecursionError:
        raise BadRequest("bad_json", f"request body is nested deeper than {MAX_NESTING} levels") from None
    if nests_too_deep(body):
        raise BadRequest("bad_json", f"request body is nested deeper than {MAX_NESTING} levels")
    return value


def nests_too_deep(body: bytes) -> bool:
    """Whether the arrays and objects of valid JSON nest deeper than MAX_NESTING levels."""
    if body.count(b"[") + body.count(b"{") <= MAX_NESTING:
        return False
    text = body.replace(rb"\\", b"").replace(rb"\"", b"")
    return _NESTED.fullmatch(text.translate(_AS_ARRAYS, _NO_BRACKETS)) is None


def _nested(levels: int) -> re.Pattern[bytes]:
    """Brackets that nest no deeper than this, with strings among them, once all else has been taken out."""
    # Fast path: one pattern instead of a count over each bracket, a tenth of the time, see docs/performance.md. All
    # its repeats are possessive, and so it goes over the text once.
    pattern = rb'(?:"[^"]*+")*+'
    for _ in range(levels):
        pattern = rb'(?:"[^"]*+"|\[%b\])*+' % pattern
    return re.compile(pattern)


_NESTED = _nested(MAX_NESTING)


def decode(json: bytes, shape: type[T]) -> T:
    """Decode JSON that may have halves of surrogate pairs, though not in fields of `shape`; raises msgspec's errors."""
    decode = _decoder(shape).decode  # type: ignore[arg-type]
    try:
        value: T = decode(json)
    except msgspec.DecodeError as error:
        if isinstance(error, msgspec.ValidationError) or not has_surrogates(json):
            raise
        # msgspec refuses halves even where it skips. What comes out the same, whatever stands for them, has none.
        value = decode(without_surrogates(json, digit=b"e"))
        if value != decode(without_surrogates(json, digit=b"f")):  # there are pairs in it, or halves
            value = decode(without_lone_surrogates(json, instead=rb"\ufffd"))
            if value != decode(without_lone_surrogates(json, instead=rb"\ufffe")):
                raise
    return value


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)
