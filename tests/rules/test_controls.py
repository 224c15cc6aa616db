"""The rule for characters of texts, which is the same for players, operators and settings."""

import pytest

from solisync.errors import BadRequest
from solisync.rules.administration import check_text
from solisync.rules.leaderboard import check_display_name
from solisync.rules.queries import read_query
from solisync.settings.values import site_links, site_name
from solisync.web.console.players import PlayersQuery

TEXTS = {
    "a joiner": "می\u200cخواهم",
    "an emoji of several": "👩\u200d👩\u200d👧",
    "a wide space": "10\u00a0000",
    "a soft hyphen": "a\u00adb",
    "a letter that Unicode has got since": "a\U0001fac8b",
}
REFUSED = ["a\0b", "a\tb", "a\x1bb", "a\x7fb", "a\x9bb", "a\u061cb", "a\u200eb", "a\u202eb", "a\u2066b", "a\ud800b"]
PLACES = {
    "a display name": check_display_name,
    "a message or a note": lambda text: check_text(text, "message", 200),
    "a search": lambda text: read_query(PlayersQuery, {"q": [text]}.get).q,
    "the name of the site": site_name,
    "the name of a link": lambda text: site_links(f"{text}=/a")[0][0],
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", TEXTS.values(), ids=[*TEXTS])
def test_text_may_have_invisible_characters(place, text):
    """Languages and emoji need them."""
    assert PLACES[place](text) == text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", REFUSED, ids=ascii)
def test_text_has_no_control_characters(place, text):
    """Characters of Unicode's two control blocks, of directions, and halves of pairs."""
    with pytest.raises((BadRequest, ValueError)):
        PLACES[place](text)


def test_text_of_an_operator_may_have_lines():
    assert check_text("one\ntwo", "note", 500) == "one\ntwo"
