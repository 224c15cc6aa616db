"""Escapes in JSON that aren't text (docs/protocol.md "Common to all routes")."""

import json
import re

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from solisync.rules.surrogates import escape_surrogates, restore_surrogates, without_lone_surrogates

PARTS = ["a", "\ud800", "\udbff", "\udc00", "\\", "\\u", "ud800", '"', "😀", "\0"]


@given(st.lists(st.sampled_from(PARTS)).map("".join), st.booleans())
def test_half_a_surrogate_pair_is_replaced(text, upper):
    """Each half has its own replacement. Whole pairs, other escapes and lookalikes stay."""
    body = json.dumps({"x": text}).encode()
    if upper:
        body = re.sub(rb"(?<!\\)((?:\\\\)*\\u)(....)", lambda escape: escape[1] + escape[2].upper(), body)
    read = json.loads(without_lone_surrogates(body, instead=rb"\ufffd"))["x"]
    whole = re.sub("[\ud800-\udbff][\udc00-\udfff]", lambda pair: json.loads(json.dumps(pair[0])), text)
    assert read == re.sub("[\ud800-\udfff]", "\ufffd", whole)


@given(st.lists(st.sampled_from([*PARTS, "0000", "d800"])).map("".join))
def test_escaped_surrogates_can_be_decoded_and_restored(text):
    """Escaped JSON has no surrogates. Restored, it equals the original byte for byte, even if only a part is left."""
    raw = json.dumps({"x": "\ud800", "y": [text]}).encode()
    fields = msgspec.json.decode(escape_surrogates(raw), type=dict[str, msgspec.Raw])
    assert restore_surrogates(escape_surrogates(raw)) == raw
    assert restore_surrogates(bytes(fields["y"])) == json.dumps([text]).encode()


def test_invalid_json_stays_invalid():
    """Raw control characters stay, and the decoder refuses them."""
    body = b'{"x": "\0\0", "y": "\\ud800"}'
    assert without_lone_surrogates(body, instead=rb"\ufffd") == body
