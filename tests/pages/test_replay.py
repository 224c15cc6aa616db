"""Tests of the page of a replay: it plays every position of the engine, in pictures and words, by any kind of input."""

import re
from itertools import pairwise

import pytest

from solisync.klondike.rules import FACE_DOWN, PILE_NAMES
from tests.checking.uploads import game
from tests.harness.postgres import run_sql
from tests.klondike.playback import Player
from tests.pages.player import Fingers
from tests.pages.visitor import Game, answered, until

POSITIONS = """async timeline => (await web("board.js")).positions(timeline)"""
WINDOWS = [(1366, 650), (1280, 720), (1024, 768), (390, 844), (844, 390)]
CARDS = """() => [...document.querySelectorAll("#board .card")].map(card => card.getBoundingClientRect())
  .filter(box => box.width).map(box => [box.left, box.top, box.right, box.bottom])"""
SHOWN = """() => Object.fromEntries([...document.querySelectorAll("#board ol")].map(list =>
  [list.getAttribute("aria-label"), [...list.children].map(card => card.textContent)]))"""


def names(board):
    """Return a board of the engine in the page's form: piles of cards, and each column's number of face-down cards."""
    piles = dict(zip(PILE_NAMES, board, strict=True))
    cards = {name: [card % FACE_DOWN for card in pile] for name, pile in piles.items()}
    down = {name: sum(card >= FACE_DOWN for card in pile) for name, pile in piles.items() if name[0] == "t"}
    return {"piles": cards, "down": down}


def test_every_position_equals_the_engines(visitor, site):
    """The games are with and without undos, and their seeds are too large for a double."""
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
    """The page of a game with undone moves, and the game's timeline."""
    ann = Game(site)
    replay_id = ann.upload(game(0, undo=True))
    page = visitor.open(f"/replays/{replay_id}")
    page.wait_for_selector("#player.ready")
    return page, ann.call("GET", f"/api/replays/{replay_id}/timeline")


def count(page):
    return int(page.inner_text("#count").split("/")[0])


def test_keys_step_while_the_replay_has_the_focus(watched):
    page, timeline = watched
    end = len(timeline["steps"])
    page.keyboard.press("ArrowRight")
    assert count(page) == 0  # the page has the focus, not the replay
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


def test_replay_can_be_followed_with_a_screen_reader(watched):
    """The live region announces each step; during playback, only start, pause and end. Equal texts in a row differ."""
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


def test_replay_plays_to_the_win(watched):
    page, timeline = watched
    page.select_option("#speed", "8×")
    page.fill("#seek", str(len(timeline["steps"]) - 5))
    page.click("#play")
    until(page, "document.getElementById('said').textContent.includes('Won with')")
    assert page.get_attribute("#play", "aria-label") == "Play"
    assert page.inner_text("#points") == f"{timeline['steps'][-1]['score']} points"
    page.click("#play")  # playback starts again from the deal
    until(page, "parseInt(document.getElementById('count').textContent) < 9")


def test_address_has_the_number_of_the_move(watched):
    page, _ = watched
    page.focus("#board")
    page.keyboard.press("Shift+ArrowRight")
    page.wait_for_url("**?move=10")
    page.reload()
    page.wait_for_selector("#player.ready")
    assert count(page) == 10
    assert page.get_attribute("#transcript [aria-current]", "aria-current") == "step"
    box, item = page.locator("#transcript").bounding_box(), page.locator("#transcript [aria-current]").bounding_box()
    assert box["y"] <= item["y"] <= item["y"] + item["height"] <= box["y"] + box["height"]
    page.keyboard.press("ArrowRight")  # a link to a move gives the replay the focus
    assert count(page) == 11
    page.locator("#transcript li button").nth(4).click()
    assert count(page) == 5
    for wild in ("-3", "1e9", "x", ""):
        page.goto(f"{page.url.split('?')[0]}?move={wild}")
        page.wait_for_selector("#player.ready")
        assert count(page) == (page.evaluate("Number(seek.max)") if wild == "1e9" else 0)


def test_seeking_takes_less_than_a_frame(watched, figure):
    """A jump between any two moves takes at most 16 ms of processor time for script, style and layout."""
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
    assert each < 160  # ten times the target, because the machine may be busy


def test_link_to_the_current_move_is_copied(visit, site):
    replay_id = Game(site).upload(game())
    visitor = visit(permissions=["clipboard-read", "clipboard-write"])
    page = visitor.open(f"/replays/{replay_id}?move=47")
    page.click("#copy")
    until(page, "document.getElementById('said').textContent.includes('Link to move 47 copied')")
    assert page.evaluate("navigator.clipboard.readText()") == f"{site}/replays/{replay_id}?move=47"


def test_replay_that_cannot_be_played_is_explained(visitor, site):
    """The replay has no moves, no seed, a refutation or unknown moves. The page explains this without errors."""
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


def test_replay_opens_by_itself_after_its_check(visitor, site, running):
    """The page shows the verdict and the game as soon as the check is done."""
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


def test_replay_with_too_many_steps_is_explained(visitor, site):
    replay_id = Game(site).upload(game())
    refusal = {
        "status": 409,
        "headers": {"Error-Code": "not_playable"},
        "json": {"error": "replay can not be played back"},
    }
    visitor.context.route("**/timeline", lambda route: route.fulfill(**refusal))
    page = visitor.open(f"/replays/{replay_id}")
    assert "too many moves" in page.inner_text("#why")


@pytest.fixture
def shared(site):
    """The path of the page of a game with undos."""
    return f"/replays/{Game(site).upload(game(0, undo=True))}"


def watch(visitor, path):
    visitor.page.goto(path)
    visitor.page.wait_for_selector("#player.ready")
    return visitor.page


def test_page_has_title_and_controls(visitor, site):
    """The page shows every digit of a seed near 2^64."""
    replay = next(each for each in map(game, range(6)) if each["seed"] > 2**63)
    page = watch(visitor, f"/replays/{Game(site).upload(replay)}")
    assert page.inner_text("#deal") == str(replay["seed"])
    assert page.title().startswith(f"ann won with {replay['final_score']} points")
    assert page.inner_text("h1") == f"ann won with {replay['final_score']} points"
    for name in ("Start", "Previous move", "Play", "Next move", "End", "Keys"):
        assert page.get_by_role("button", name=name, exact=True).is_visible()
    assert page.get_by_role("slider", name="Move").is_visible()
    assert page.get_by_role("combobox", name="Speed").is_visible()
    page.click("#last")
    assert page.inner_text("#points") == f"{replay['final_score']} points"
    page.click(".brand")
    page.wait_for_url(f"{visitor.site}/")


def test_controls_and_board_fit_into_the_window(visit, shared, figure):
    """Laptops, a tablet, a phone and a phone held sideways show both without scrolling.

    The board is at least 400 pixels wide, or as wide as a narrower window.
    """
    for width, height in WINDOWS:
        visitor = visit(width=width)
        visitor.page.set_viewport_size({"width": width, "height": height})
        page = watch(visitor, shared)
        ends = {}
        for name in ("#board", "#seek", "#play", "#speed"):
            box = page.locator(name).bounding_box()
            ends[name] = box["y"] + box["height"]
            assert ends[name] <= height, (width, height, name)
            assert box["x"] + box["width"] <= width
        board = page.locator("#board").bounding_box()
        figure(f"{width} x {height}: controls end at {max(ends.values()):.0f} px, board {board['width']:.0f} px wide")
        assert board["width"] >= min(width - 24, 400)


def cards_in_felt(page):
    """Check that every card is on the board, and return the lower end of the board."""
    felt = page.locator("#board").bounding_box()
    right, bottom = felt["x"] + felt["width"], felt["y"] + felt["height"]
    for box in page.evaluate(CARDS):
        assert felt["x"] <= box[0] < box[2] <= right
        assert felt["y"] <= box[1] < box[3] <= bottom
    return bottom


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_every_card_is_on_the_felt(visit, site, width):
    """Slots and cards have the same places, no card sticks out, and a column shows the ranks of 19 cards."""
    visitor = visit(width=width)
    page = watch(visitor, f"/replays/{Game(site).upload(game(1))}?move=60")
    for _ in range(5):
        page.keyboard.press("Shift+ArrowRight")
        bottom = cards_in_felt(page)
    page.click("#last")
    page.wait_for_timeout(300)
    slots = page.locator(".foundation").all()
    assert len(slots) == 4
    for slot in slots:
        assert slot.bounding_box() == slot.locator(".card").last.bounding_box()

    down = [0, 1, 2, 3, 4, 5]
    run = [13 * (2 if index % 2 else 3) + 12 - index for index in range(13)]
    rest = [card for card in range(52) if card not in (*down, *run)]
    deal = {"tableau": [[], [], [], [], [], [], [*down, *run]], "stock": rest}
    page.evaluate(
        """async deal => {
      const {Board, positions} = await web("board.js");
      const [position] = positions({deal, steps: []});
      position.down.t6 = 6;
      document.getElementById("board").replaceChildren();
      new Board(document.getElementById("board"), 1).show(position, 0);
    }""",
        deal,
    )
    boxes = page.evaluate(
        """() => [...document.querySelectorAll(".column:last-child .card")]
          .map(card => card.getBoundingClientRect().toJSON())"""
    )
    assert len(boxes) == 19
    assert boxes[-1]["bottom"] <= bottom
    assert all(lower["top"] - upper["top"] >= 10 for upper, lower in pairwise(boxes[6:]))
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_cards_have_names(visitor, shared):
    """The page has a live region, and a named region of 13 named lists with a named item for each card.

    An empty foundation takes any ace, so its name has no suit.
    """
    page = watch(visitor, shared)
    board = page.get_by_role("region", name="Board")
    assert board.get_by_role("list").count() == 13
    labels = board.get_by_role("list").evaluate_all("lists => lists.map(list => list.getAttribute('aria-label'))")
    assert labels[0] == "Stock: 24 face down"
    assert labels[2:6] == [f"Foundation {number}: empty" for number in range(1, 5)]
    assert re.fullmatch(r"Column 3: 2 face down, \w+ of \w+", labels[8])
    assert re.search(r"\w+ of (clubs|diamonds|hearts|spades)", board.get_by_role("listitem").last.inner_text())
    assert page.get_by_role("status").get_attribute("aria-atomic") == "true"


def test_face_down_cards_are_recognisable_in_forced_colours(visit, shared):
    """The cards keep their pattern, which empty places don't have."""
    page = watch(visit(forced_colors="active"), shared)
    kept = "card => getComputedStyle(card).forcedColorAdjust"
    assert page.locator(".column .down").first.evaluate(kept) == "none"
    assert "gradient" in page.locator(".column .down").first.evaluate(
        "card => getComputedStyle(card, '::after').backgroundImage"
    )


def test_replay_has_no_animation_with_reduced_motion(visit, shared):
    """Cards move without animation, and autoplay makes at most one move a second."""
    visitor = visit(reduced_motion="reduce")
    page = watch(visitor, shared)
    faster = page.locator("#speed option:disabled").all_text_contents()
    assert faster == ["2×", "4×", "8×"]  # disabled, because these speeds would have no effect
    page.click("#next")
    assert page.evaluate("document.getAnimations().length") == 0
    page.click("#play")
    page.wait_for_timeout(2600)
    assert page.evaluate("document.getAnimations().length") == 0
    assert int(page.inner_text("#count").split("/")[0]) in (2, 3, 4)
    page.click("#play")
    lively = visit()
    page = watch(lively, shared)
    page.click("#next")
    assert page.evaluate("document.getAnimations().length") > 0


@pytest.mark.parametrize(("motion", "moves"), [("no-preference", True), ("reduce", False)])
def test_win_is_animated(visit, site, motion, moves):
    """Players who prefer reduced motion see no animation."""
    replay_id = Game(site).upload(game())
    visitor = visit(reduced_motion=motion)
    page = visitor.open(f"/replays/{replay_id}?move=9999")
    page.wait_for_selector("#player.ready")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    until(page, "document.getElementById('seek').value === document.getElementById('seek').max")
    risen = "document.querySelectorAll('.foundation li:last-child')[3].getAnimations().length"
    assert bool(page.evaluate(risen)) is moves


def test_settings_of_the_replay_survive_a_reload(visit, shared):
    """The settings are speed and colours."""
    page = watch(visit(), shared)
    page.select_option("#speed", "4×")
    page.check("#colours")
    page.reload()
    page.wait_for_selector("#player.ready")
    assert page.input_value("#speed") == "4×"
    assert page.is_checked("#colours")
    assert page.evaluate("document.body.classList.contains('four')")


def test_clicks_and_the_wheel_step_through_the_replay(visit, shared):
    """The right half of the board steps forward, the left half back. The focused board takes the wheel for steps."""
    page = watch(visit(), shared)
    board = page.locator("#board")
    box = board.bounding_box()
    board.click(position={"x": box["width"] - 30, "y": 200})
    board.click(position={"x": box["width"] - 30, "y": 200})
    assert count(page) == 2
    board.click(position={"x": 30, "y": 200})
    assert count(page) == 1
    board.focus()
    page.mouse.move(box["x"] + 50, box["y"] + 50)
    page.mouse.wheel(0, 120)
    until(page, "document.getElementById('count').textContent.startsWith('2 ')")
    page.evaluate("document.activeElement.blur()")
    page.mouse.wheel(0, 120)
    until(page, "scrollY > 0")
    assert count(page) == 2


def test_swipe_steps_through_the_moves(visit, shared):
    """A swipe to the left steps forward, to the right back, one move for each part of its length. It isn't a tap."""
    visitor = visit(width=390, has_touch=True)
    page = watch(visitor, shared)
    box = page.locator("#board").bounding_box()
    x, y = box["x"], box["y"] + 100
    Fingers(page).drag((x + 300, y), (x + 180, y), steps=12, pause=0)
    assert count(page) in (2, 3)


def test_two_fingers_on_a_replay_make_no_step(visit, shared):
    """Two fingers enlarge the page, while a swipe of one finger steps forward."""
    page = watch(visit(width=390, has_touch=True), f"{shared}?move=10")
    Fingers(page).spread(page.locator("#board").bounding_box())
    assert page.input_value("#seek") == "10"
    assert page.evaluate("visualViewport.scale") > 1.2


def test_click_on_the_curve_jumps_to_a_move(visit, shared):
    """A click in the middle of the curve jumps to the middle of the game."""
    page = watch(visit(), shared)
    box = page.locator("#curve").bounding_box()
    assert page.get_attribute("#curve polyline", "points").count(",") == int(page.get_attribute("#seek", "max")) + 1
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 10)
    assert abs(count(page) - int(page.get_attribute("#seek", "max")) / 2) <= 1


def test_game_of_another_player_with_the_former_name_is_not_own(visit, site, running):
    """The browser of a renamed player doesn't treat a game of the former name's new owner as the player's own."""
    bob = visit()
    bob.register("bob")
    run_sql(running.dsn, "UPDATE users SET username = 'robert' WHERE username = 'bob'")
    replay_id = Game(site, "bob").upload(game())
    page = bob.open(f"/replays/{replay_id}")
    until(page, "document.getElementById('me').textContent.endsWith('robert')")
    assert page.is_hidden("#own")
