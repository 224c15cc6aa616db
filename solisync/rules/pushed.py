"""Progress as a device pushed it, in all the spellings that clients have (docs/sync.md "The payload")."""

import msgspec

from ..errors import BadRequest
from .doubles import with_integers
from .json_body import read_json
from .sync import Document, Payload, read_known, read_unknown


def read_pushed(body: bytes) -> Document:
    """Decode what a device pushed; raises BadRequest with the path of the field that is wrong."""
    known = read_known(body)
    if known is not None:
        return known
    payload = _read_payload(body)
    try:
        return Document(payload, read_unknown(body))
    except msgspec.DecodeError as error:
        raise BadRequest("bad_json", f"request body: name of a field: {error}") from None


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
