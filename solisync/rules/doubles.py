"""JSON from clients whose numbers are all doubles, and are printed as such: 95 as 95.0 (docs/sync.md "Doubles")."""

import json
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw

Fields = dict[str, Raw]
Number = int | float

_decode_fields = msgspec.json.Decoder(Fields).decode
_decode_numbers = msgspec.json.Decoder(Number | list[Number] | dict[str, Number]).decode
_encode = msgspec.json.Encoder().encode


def with_integers(body: bytes, *parts: str) -> bytes:
    """A JSON object in whose `parts`, objects too, each number that is whole is spelled as an integer.

    Looks at each field of a part that is a number, or an array or object of numbers. Raises DecodeError or
    RecursionError for anything else than an object of objects.
    """
    fields = _decode_fields(body)
    for part in fields.keys() & parts:
        numbers = _decode_fields(fields[part])
        for name, raw in numbers.items():
            with suppress(msgspec.ValidationError):
                numbers[name] = Raw(json.dumps(_whole(_decode_numbers(raw))).encode())
        fields[part] = Raw(_encode(numbers))
    return _encode(fields)


def _whole(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_whole(each) for each in value]
        case dict():
            return {name: _whole(each) for name, each in value.items()}
    return value
