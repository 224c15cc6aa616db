"""A replay is played back as the engine played it, in words and by any means of moving."""

import re
from itertools import pairwise

import pytest

from solisync.klondike.rules import FACE_DOWN, PILE_NAMES
from tests.checking.uploads import game
from tests.harness.postgres import run_sql
from tests.klondike.playback import Player
from tests.pages.visitor import Game, answered, until

POSITIONS = """async timeline => (await import("/web/board.js")).positions(timeline)"""
SHOWN = """() => Object.fromEntries([...document.querySelectorAll("#board ol")].map(list =>
  [list.getAttribute("aria-label"), [...list.children].map(card => card.textContent)]))"""


def names(board):
    """A board of the engine as the page has it: piles of cards, and how many of them lie face down."""
    piles = dict(zip(PILE_NAMES, board, strict=True))
    cards = {name: [card % FACE_DOWN for card in pile] for name, pile in piles.items()}
    down = {name: sum(card >= FACE_DOWN for card in pile) for name, pile in piles.items() if name[0] == "t"}
    return {"piles": cards, "down": down}


def test_every_position_is_the_engines(visitor, site):
    """Of games with undos and without; the seeds are far above what a double can hold."""
    ann = Game(site)
    for number, undo in ((0, False), (1, False), (0, True), (3, True)):
        replay_id = ann.upload(game(number, undo=undo))
        timeline = ann.call("GET", f"/api/replays/{replay_id}/timeline")
        page = visitor.open(f"/replays/{replay_id}")
        shown = answered(page, POSITIONS, timeline)
        player = Player(timeline["deal"])
        for position, step in zip(shown, [None, *timeline["steps"]], strict=True):
            if step is not None:
                player.show(step)
            assert position == names(player.board)
        page.click("#last")
        labels = page.evaluate(SHOWN)
        assert sum(label.startswith("Foundation") and label.endswith("up to the king") for label in labels) == 4


@pytest.fixture
def watched(visitor, site):
    """The page of a game with moves taken back, and its timeline."""
    ann = Game(site)
    replay_id = ann.upload(game(0, undo=True))
    page = visitor.open(f"/replays/{replay_id}")
    page.wait_for_selector("#player.ready")
    return page, ann.call("GET", f"/api/replays/{replay_id}/timeline")


def count(page):
    return int(page.inner_text("#count").split("/")[0])


def test_keys_move_while_the_player_has_focus(watched):
    page, timeline = watched
    end = len(timeline["steps"])
    page.keyboard.press("ArrowRight")
    assert count(page) == 0  # the page has the focus, not the player
    page.focus("#board")
    for key, move in (
        ("ArrowRight", 1), ("Shift+ArrowRight", 11), ("ArrowLeft", 10), ("Shift+ArrowLeft", 0), ("ArrowLeft", 0),
        ("End", end), ("ArrowRight", end), ("Home", 0), ("j", 1), ("Shift+j", 11), ("k", 10), ("$", end), ("0", 0),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert count(page) == move, key
    page.keyboard.press("]")
    assert page.input_value("#speed") == "2×"
    page.keyboard.press("[")
    page.keyboard.press("[")
    assert page.input_value("#speed") == "½×"
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "board"
    page.focus("#seek")
    page.keyboard.press("ArrowRight")
    assert count(page) == 1
    page.keyboard.press("Shift+ArrowRight")
    assert count(page) == 11


def test_it_can_be_followed_by_listening_alone(watched):
    """The live region says each step; while playing only start, pause and end, and equal words differ."""
    page, timeline = watched
    page.focus("#board")
    said = []
    for _ in timeline["steps"]:
        page.keyboard.press("ArrowRight")
        said.append(page.text_content("#said"))
    transcript = page.locator("#transcript li").all_text_contents()
    assert [text.rstrip("\u00a0") for text in said[:-1]] == transcript[:-1]
    assert all(before != after for before, after in pairwise(said))
    assert re.search(r"Won with [\d,]+ points$", said[-1])
    undone = page.locator("#transcript .undone").all_text_contents()
    assert len(undone) == timeline["undos"] > 0
    assert all(text.startswith("Undo: ") for text in undone)
    page.keyboard.press("Home")
    page.select_option("#speed", "8×")
    page.focus("#board")
    page.keyboard.press(" ")
    assert page.text_content("#said") == "Playing"
    until(page, "parseInt(document.getElementById('count').textContent) > 3")
    assert page.text_content("#said") == "Playing"
    page.keyboard.press(" ")
    assert page.text_content("#said").startswith("Paused at move ")


def test_it_plays_to_the_win(watched):
    page, timeline = watched
    page.select_option("#speed", "8×")
    page.fill("#seek", str(len(timeline["steps"]) - 5))
    page.click("#play")
    until(page, "document.getElementById('said').textContent.includes('Won with')")
    assert page.get_attribute("#play", "aria-label") == "Play"
    assert page.inner_text("#points") == f"{timeline['steps'][-1]['score']} points"
    page.click("#play")  # and again from the deal
    until(page, "parseInt(document.getElementById('count').textContent) < 9")


def test_the_address_has_the_move(watched):
    page, _ = watched
    page.focus("#board")
    page.keyboard.press("Shift+ArrowRight")
    page.wait_for_url("**?move=10")
    page.reload()
    page.wait_for_selector("#player.ready")
    assert count(page) == 10
    assert page.get_attribute("#transcript [aria-current]", "aria-current") == "step"
    box, item = page.locator("#transcript").bounding_box(), page.locator("#transcript [aria-current]").bounding_box()
    assert box["y"] <= item["y"] <= box["y"] + box["height"]
    page.locator("#transcript li button").nth(4).click()
    assert count(page) == 5
    for wild in ("-3", "1e9", "x", ""):
        page.goto(f"{page.url.split('?')[0]}?move={wild}")
        page.wait_for_selector("#player.ready")
        assert count(page) == (page.evaluate("Number(seek.max)") if wild == "1e9" else 0)


def test_seeking_takes_less_than_a_frame(watched, figure):
    """To any move, from any other: 16 ms of the processor for script, style and layout."""
    page, _ = watched
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent():
        return next(
            item["value"] for item in tools.send("Performance.getMetrics")["metrics"] if item["name"] == "TaskDuration"
        )

    before = spent()
    page.evaluate("""() => {
      for (let at = 0; at < 200; at++) {
        seek.value = at * 37 % (Number(seek.max) + 1);
        seek.dispatchEvent(new Event("input"));
        document.body.offsetHeight;
      }
    }""")
    each = (spent() - before) / 200 * 1000
    figure(f"a seek takes {each:.1f} ms of the processor")
    assert each < 160  # ten times the target, for machines that are busy


def test_the_link_at_this_move_is_copied(visit, site):
    replay_id = Game(site).upload(game())
    visitor = visit(permissions=["clipboard-read", "clipboard-write"])
    page = visitor.open(f"/replays/{replay_id}?move=47")
    page.click("#copy")
    until(page, "document.getElementById('said').textContent.includes('Link to move 47 copied')")
    assert page.evaluate("navigator.clipboard.readText()") == f"{site}/replays/{replay_id}?move=47"


def test_nothing_to_play_says_why(visitor, site):
    """No moves, no seed, refuted, moves of no known shape: the page says what is wrong and stays alive."""
    ann = Game(site)
    replay = game()
    cases = {
        "has no moves": {**replay, "moves": []},
        "which deal was played": {key: value for key, value in replay.items() if key != "seed"},
        "but with another score": {**replay, "final_score": replay["final_score"] + 1},
        "not in a known format": {**replay, "moves": "<b>many</b>"},
        "are not in a known": {
            **replay, "moves": [{"Move": {"from": {"Tableau": 99}, "to": "Waste", "count": 1}}],
        },
    }  # fmt: skip
    for words, body in cases.items():
        page = visitor.open(f"/replays/{ann.upload(body)}")
        assert words in page.inner_text("#verdict"), (words, page.inner_text("#verdict"))
        assert page.is_hidden("#player")
        assert "ann" in page.inner_text("h1")


def test_a_game_that_is_being_checked_opens_by_itself(visitor, site, running):
    """As soon as its check is done, the page shows the verdict and the game."""
    replay_id = Game(site).upload(game())
    names = "SELECT string_agg(column_name, ', ') FROM information_schema.columns WHERE table_name = 'verdicts'"
    ((columns,),) = run_sql(running.dsn, f"{names} AND is_generated = 'NEVER'")
    run_sql(running.dsn, "CREATE TABLE kept AS TABLE verdicts")
    run_sql(running.dsn, "DELETE FROM verdicts")
    try:
        page = visitor.open(f"/replays/{replay_id}")
        assert "still checking" in page.inner_text("#verdict")
        run_sql(running.dsn, f"INSERT INTO verdicts ({columns}) SELECT {columns} FROM kept")
        page.wait_for_selector("#player.ready")
        assert page.inner_text("#verdict").startswith("Verified")
    finally:
        run_sql(running.dsn, "DROP TABLE kept")


def test_more_steps_than_can_be_shown_are_said_so(visitor, site):
    replay_id = Game(site).upload(game())
    refusal = {
        "status": 409,
        "headers": {"Error-Code": "not_playable"},
        "json": {"error": "replay can not be played back"},
    }
    visitor.context.route("**/timeline", lambda route: route.fulfill(**refusal))
    page = visitor.open(f"/replays/{replay_id}")
    assert "too many moves" in page.inner_text("#why")
