"""Progress as the merge takes it: decoded, and beside it the fields that the server doesn't know."""

import msgspec

from solisync.rules.documents import read_unknown
from solisync.rules.sync import Document, Payload
from tests.harness.payloads import encode, progress_of


def document(payload):
    """Return the decoded form of a payload of plain values."""
    raw = encode(payload)
    return Document(msgspec.json.decode(raw, type=Payload), read_unknown(raw))


def example(**changes):
    """Return example progress with changes such as stats__games_won=5."""
    return document(progress_of(**changes))
