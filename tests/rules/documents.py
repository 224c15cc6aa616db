"""Progress as the merge takes it: decoded, with what the server doesn't know kept beside."""

import msgspec

from solisync.rules.documents import read_unknown
from solisync.rules.sync import Document, Payload
from tests.harness.payloads import encode, progress_of


def document(payload):
    """The decoded form of a payload of plain values."""
    raw = encode(payload)
    return Document(msgspec.json.decode(raw, type=Payload), read_unknown(raw))


def example(**changes):
    """The progress of nobody in particular, with changes like stats__games_won=5."""
    return document(progress_of(**changes))
