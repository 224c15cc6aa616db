"""Strict decoding of JSON bodies; docs/protocol.md "Common to all routes" has the rules."""

import re
from functools import cache
from itertools import accumulate
from typing import Any, TypeVar

import msgspec

from ..errors import BadRequest

MAX_NESTING = 64

T = TypeVar("T")

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')  # possessive: a long string must not cost a stack
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def read_json(body: bytes, shape: type[T]) -> T:
    """Decode a body into `shape`; raises BadRequest with the path of the field that is wrong."""
    try:
        body.decode("utf-8")  # the whole body: msgspec skips the fields that `shape` does not have
        value: T = _decoder(shape).decode(body)  # type: ignore[arg-type]
    except UnicodeDecodeError:
        raise BadRequest("bad_json", "request body is not UTF-8") from None
    except msgspec.ValidationError as error:
        raise BadRequest("bad_field", f"request body: {error}") from None
    except msgspec.DecodeError as error:
        raise BadRequest("bad_json", f"request body is not valid JSON: {error}") from None
    except RecursionError:
        raise BadRequest("bad_json", f"request body is nested deeper than {MAX_NESTING} levels") from None
    if nesting(body) > MAX_NESTING:
        raise BadRequest("bad_json", f"request body is nested deeper than {MAX_NESTING} levels")
    return value


def nesting(body: bytes) -> int:
    """How deep the arrays and objects of valid JSON nest, or an upper bound that is within MAX_NESTING."""
    brackets = body.count(b"[") + body.count(b"{")
    if brackets <= MAX_NESTING:
        return brackets
    steps = (_STEP[byte] for byte in _STRING.sub(b"", body) if byte in _STEP)
    return max(accumulate(steps), default=0)


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)
