"""The files that docs/replays.md offers to client developers get the verdicts that it lists."""

import json
import re

import msgspec
import pytest

from solisync.klondike import Reason, check
from solisync.klondike.deal import deal, shuffled_deck
from solisync.klondike.game import Game
from solisync.klondike.recording import read_recording
from solisync.klondike.rules import COLUMNS, FACE_DOWN, STOCK
from solisync.klondike.scoring import RULESETS
from solisync.web.json_schemas import EXAMPLE_FILE, RecordedGame, schemas
from tests.harness.constants import ROOT

FILES = ROOT / "docs" / "replays"
INDEX = json.loads((FILES / "index.json").read_text("utf-8"))
PAGE = (ROOT / "docs" / "replays.md").read_text("utf-8")
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$ref": "#/$defs/RecordedGame",
    "$defs": schemas([RecordedGame], reference="#/$defs/{name}"),
}
MALFORMED = {"no_moves.json", "no_seed.json", "unknown_move.json"}


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])
def test_each_replay_gets_the_verdict_of_the_index(entry):
    """All fields of the API's verdict agree but the time."""
    verdict = check((FILES / entry["file"]).read_bytes())
    assert {name: getattr(verdict, name) for name in entry["verdict"]} == entry["verdict"]


def test_index_names_every_file():
    """The page links to each file. Every reason has a file, except those of a failed or too long check."""
    named = {entry["file"] for entry in INDEX}
    assert named | {"index.json", "deals.json", "replay.schema.json"} == {path.name for path in FILES.iterdir()}
    assert {f"replays/{name}" for name in named} <= set(re.findall(r"\]\(([^)]+)\)", PAGE))
    assert {entry["verdict"]["reason"] for entry in INDEX} == {*Reason, None} - {Reason.BUDGET, Reason.CRASHED}


def test_documented_deals_are_those_of_the_engine():
    """The page has shuffled lists, and the columns and the stock of one deal."""
    for each in json.loads((FILES / "deals.json").read_text("utf-8")):
        assert shuffled_deck(int(each["seed"])) == each["deck"]
    worked = PAGE.split("### One deal, step by step")[1].split("## ")[0]
    listed = re.search(r"The shuffled list is ([\d,\s]+)\.", worked)[1]
    assert [int(card) for card in listed.split(",")] == shuffled_deck(2202)
    board = deal(2202)
    columns = re.findall(r"^\| (\d) \| (.+) \|$", worked, re.M)
    assert [row.split() for _, row in columns] == [[name(card) for card in board[pile]] for pile in COLUMNS]
    assert re.search(r"The stock is (.+?),", worked, re.S)[1].split() == [name(card) for card in board[STOCK]]


def name(card):
    """Return a card as the page writes it: 10♠."""
    card %= FACE_DOWN
    return f"{['A', *range(2, 11), 'J', 'Q', 'K'][card % 13]}{'♣♦♥♠'[card // 13]}"


def test_page_shows_the_beginning_of_the_first_replay():
    """Header and first moves are quoted; the points after each of them are in a table."""
    body = (FILES / "won_draw_one.json").read_bytes()
    whole = json.loads(body)
    shown = json.loads(re.search(r"```json\n(.+?)```", PAGE, re.S)[1])
    assert shown == whole | {"moves": whole["moves"][: len(shown["moves"])]}
    rows = re.findall(r"^\| `(.+?)` \| .+ \| .+ \| (\d+) \|$", PAGE, re.M)
    assert [json.loads(move) for move, _ in rows] == shown["moves"]
    game = Game(deal(whole["seed"]), RULESETS[0], draw=1)
    for (_, score), move in zip(rows, read_recording(body).moves, strict=False):
        assert game.play(move) is not None
        assert game.score == int(score)


def test_example_of_the_api_is_the_first_replay():
    """The files are equal to the byte, so that the text about one is true of the other."""
    path = EXAMPLE_FILE
    assert path.read_bytes() == (FILES / "won_draw_one.json").read_bytes()


def test_published_schema_equals_the_shape_of_the_api():
    """docs/replays/replay.schema.json is made from the shape. If this fails, write the expected text to that file."""
    assert (FILES / "replay.schema.json").read_bytes() == msgspec.json.format(msgspec.json.encode(SCHEMA)) + b"\n"


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])
def test_schema_rejects_malformed_replays_only(entry):
    """A replay without a seed or moves, or of another shape, doesn't fit; all others do."""
    body = (FILES / entry["file"]).read_bytes()
    if entry["file"] in MALFORMED:
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(body, type=RecordedGame)
    else:
        assert msgspec.json.decode(body, type=RecordedGame).moves
