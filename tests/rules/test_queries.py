"""Parameters of queries: which spellings each type takes, and the positions in lists.

A position is opaque, exact to the microsecond, and has one spelling.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.players.facts import read_place
from solisync.rules.boards import BoardQuery, ClassicBoardQuery, Place, window
from solisync.rules.events import StreamQuery, boards_wanted
from solisync.rules.queries import ListPosition, moment, read_position, read_query
from solisync.rules.replay_lists import ListQuery, RecentQuery
from solisync.web.console.declaring import Older, row_number
from solisync.web.console.overviews import ActsQuery
from solisync.web.console.players import PlayersQuery, _read_place
from solisync.web.console.replays import ReplaysQuery

moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), timezones=st.just(UTC))


@given(moments, st.uuids().map(str))
def test_position_is_decoded_exactly(time, uuid):
    """Every possible time and id fits into 32 characters that a URL takes."""
    text = ListPosition(time, uuid).text
    assert (len(text), text.replace("-", "").replace("_", "").isalnum()) == (32, True)
    assert read_position(text, "before") == ListPosition(time, uuid)


@given(st.from_regex(r"[A-Za-z0-9_-]{32}", fullmatch=True))
def test_position_has_one_spelling(text):
    """Each text of 32 such characters is one position, or has no time of the years 1 to 9999."""
    with suppress(BadRequest):
        assert read_position(text, "before").text == text


def test_positions_before_1970_are_valid():
    """A node's clock may have been wrong."""
    assert read_position("_" * 32, "before").time == datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=1)


def test_first_page_has_no_position():
    assert read_position(None, "before") is None


GOOD = ListPosition(datetime(2026, 11, 20, tzinfo=UTC), "00000000-0000-4000-8000-000000000000").text


BAD = ["", "x", GOOD + "=", GOOD[:-1], GOOD + "A", " " + GOOD[1:], GOOD[:-1] + "+", GOOD[:-1] + "\n"]
BAD += ["f" + "_" * 31, "g" + "A" * 31, "ü" * 32, "\N{ARABIC-INDIC DIGIT ONE}" * 32]


@pytest.mark.parametrize("values", [[GOOD, GOOD], *([text] for text in BAD)])
def test_malformed_position_is_refused(values):
    """The position is doubled, empty, too short or long, padded, in another alphabet, or of an impossible year."""
    with pytest.raises(BadRequest, match="before must be what an earlier page gave as next"):
        read_position(read_query(ListQuery, {"before": values}.get).before, "before")


PLACE = Place(-5, datetime(1970, 1, 1, tzinfo=UTC), "00000000-0000-4000-8000-000000000000").text
MEMBER = "-1.00000000-0000-4000-8000-000000000000"
SPELLINGS = [
    "",
    " ",
    "0",
    "1",
    "7",
    "007",
    "00",
    "50",
    "100",
    "101",
    "1000",
    "9" * 19,
    "9" * 40,
    "+5",
    "-5",
    "-0",
    "5.0",
    "5.",
    "1e1",
    "0x5",
    "1_0",
    " 5",
    "5 ",
    "5\n",
    "٣",
    "²",
    "5,6",
    "[5]",
    '"5"',
    "null",
    "Null",
    "NULL",
    "None",
    "nan",
    "inf",
    "true",
    "True",
    "TRUE",
    "false",
    "False",
    "yes",
    "no",
    "on",
    "off",
    "t",
    "verified",
    "Verified",
    "verified ",
    "me",
    "ME",
    "2026-11-20",
    "2026-11-20T12:00:00Z",
    "2026-11-20T12:00:00",
    "2026-11-20 12:00:00Z",
    "20261120",
    "1732000000",
    "1969-12-31",
    "2026-02-30",
    GOOD,
    GOOD + "=",
    GOOD[:-1],
    GOOD + "\n",
    PLACE,
    "5.7",
    "0.0",
    MEMBER,
    "leaderboard",
    "leaderboard\n",
    "daily/2026-01-01",
    "daily/2026-13-01",
    "daily/",
    "a\0b",
    "x" * 100,
    "x" * 101,
    "é",
    "DrawOne",
    "{}",
    "[]",
]
NUMBERS = ["1", "7", "50", "100"]
LARGE = ["101", "1000", "20261120", "1732000000"]
TIMES = ["2026-11-20", "2026-11-20T12:00:00Z", "2026-11-20 12:00:00Z"]
UNSAFE = {"5\n", GOOD + "\n", "leaderboard\n", "a\0b", "x" * 101}
PARAMETERS = {  # how each is read, and the spellings that it takes
    "a bounded number": (BoardQuery, "limit", window, NUMBERS),
    "a number": (ListQuery, "limit", None, ["0", *NUMBERS, *LARGE, "007", "00", "9" * 19, "9" * 40]),
    "a flag": (ReplaysQuery, "held", None, ["true", "false"]),
    "one word": (RecentQuery, "verdict", None, ["verified"]),
    "one of two words": (ClassicBoardQuery, "draw_mode", None, ["DrawOne"]),
    "the player": (BoardQuery, "around", window, ["me"]),
    "a position": (ListQuery, "before", lambda query: read_position(query.before, "before"), [GOOD]),
    "a first position": (RecentQuery, "before", None, ["", GOOD]),
    "a place on a board": (BoardQuery, "after", window, [PLACE]),
    "a row": (Older, "before", lambda query: row_number(query.before), [*NUMBERS, *LARGE]),
    "a line of a history": (Older, "before", lambda query: read_place(query.before), ["5.0", "5.7", "0.0"]),
    "a place in a list of players": (PlayersQuery, "after", lambda query: _read_place(query.after), [MEMBER]),
    "a time": (ActsQuery, "from", lambda query: moment(query.from_, "from"), TIMES),
    "a text": (PlayersQuery, "q", None, [each for each in SPELLINGS if each not in UNSAFE]),
    "boards": (StreamQuery, "board", lambda q: boards_wanted(q.board), ["verified", "leaderboard", "daily/2026-01-01"]),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_takes_these_spellings_alone(name):
    """No value is guessed: words such as null, 1 or True, signs, spaces and other digits return 400."""
    shape, parameter, use, taken = PARAMETERS[name]
    accepted = []
    for text in SPELLINGS:
        with suppress(BadRequest):
            query = read_query(shape, {parameter: [text]}.get)
            if use is not None:
                use(query)
            accepted.append(text)
    assert sorted(accepted) == sorted(taken)


@pytest.mark.parametrize("name", [each for each in PARAMETERS if each != "boards"])
def test_doubled_parameter_is_refused(name):
    shape, parameter, _, taken = PARAMETERS[name]
    with pytest.raises(BadRequest) as raised:
        read_query(shape, {parameter: [taken[0]] * 2}.get)
    assert raised.value.code == "bad_query"


def test_parameters_have_their_values():
    """Numbers and flags are values, not texts; what is absent has its default."""
    query = read_query(ReplaysQuery, {"held": ["true"], "limit": ["7"], "verdict": ["refuted"], "x": ["1"]}.get)
    assert query == ReplaysQuery(held=True, limit=7, verdict="refuted")
    assert read_query(ReplaysQuery, {}.get) == ReplaysQuery()
    assert read_query(ReplaysQuery, {"held": ["false"]}.get) == ReplaysQuery()


@pytest.mark.parametrize(("limit", "count"), [("0", 0), ("007", 7), ("51", 50), ("0" * 5_000, 0), ("9" * 5_000, 50)])
def test_limit_of_a_list_counts_up_to_50(limit, count):
    assert read_query(ListQuery, {"limit": [limit]}.get).count == count
