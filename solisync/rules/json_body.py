"""Strict decoding of JSON bodies (docs/protocol.md "Common to all routes")."""

import re
from typing import TypeVar

import msgspec

from ..errors import BadRequest
from .surrogates import decode, without_surrogates

MAX_NESTING = 64

T = TypeVar("T")

_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))
_AS_ARRAYS = bytes.maketrans(b"{}", b"[]")


def read_json(body: bytes, shape: type[T]) -> T:
    """Decode a body into `shape`; raises BadRequest with the path of the wrong field."""
    try:
        body.decode("utf-8")  # checks the whole body, because msgspec skips fields that `shape` lacks
        value = decode(body, shape)
    except UnicodeDecodeError:
        raise BadRequest("bad_json", "request body is not UTF-8") from None
    except msgspec.ValidationError as error:
        _check_json(body)
        raise BadRequest("bad_field", f"request body: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _no_json(error) from None
    if nests_too_deep(body):
        raise BadRequest("bad_json", f"request body is nested deeper than {MAX_NESTING} levels")
    return value


def _check_json(body: bytes) -> None:
    """Raise BadRequest unless the whole body is JSON: a wrong field may stand before an end that isn't."""
    try:
        msgspec.json.decode(without_surrogates(body, digit=b"e"), type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _no_json(error) from None


def _no_json(error: msgspec.DecodeError | RecursionError) -> BadRequest:
    if isinstance(error, RecursionError):
        return BadRequest("bad_json", f"request body is nested deeper than {MAX_NESTING} levels")
    return BadRequest("bad_json", f"request body is not valid JSON: {error}")


def nests_too_deep(body: bytes) -> bool:
    """Return whether the arrays and objects of valid JSON nest deeper than MAX_NESTING levels."""
    if body.count(b"[") + body.count(b"{") <= MAX_NESTING:
        return False
    text = body.replace(rb"\\", b"").replace(rb"\"", b"")
    return _NESTED.fullmatch(text.translate(_AS_ARRAYS, _NO_BRACKETS)) is None


def _nested(levels: int) -> re.Pattern[bytes]:
    """A pattern of brackets that nest no deeper than this, with strings among them, once all other text is removed."""
    # Fast path: one pattern instead of a count over each bracket, a tenth of the time, see docs/performance.md. All its
    # repeats are possessive, so it reads the text once.
    pattern = rb'(?:"[^"]*+")*+'
    for _ in range(levels):
        pattern = rb'(?:"[^"]*+"|\[%b\])*+' % pattern
    return re.compile(pattern)


_NESTED = _nested(MAX_NESTING)
