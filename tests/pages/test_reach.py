"""The player of a replay is in the window, stays where it is, and can be used by keys, fingers and the wheel."""

import pytest

from tests.checking.uploads import game
from tests.pages.visitor import Game, until

WINDOWS = [(1366, 650), (1280, 720), (1024, 768), (390, 844), (844, 390)]
SHIFTS = """new PerformanceObserver(list => {
  for (const {value} of list.getEntries()) window.shifted = (window.shifted ?? 0) + value;
}).observe({type: "layout-shift", buffered: true})"""
SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}


@pytest.fixture
def shared(site):
    """The path of the page of a game with undos."""
    return f"/replays/{Game(site).upload(game(0, undo=True))}"


def watch(visitor, path):
    visitor.page.goto(path)
    visitor.page.wait_for_selector("#player.ready")
    return visitor.page


def count(page):
    return int(page.inner_text("#count").split("/")[0])


def test_the_controls_are_in_the_window(visit, shared, figure):
    """On laptops, a tablet, a phone and a phone held sideways, without scrolling; the board is too, and as large."""
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


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_jumps(visit, site, shared, figure, width):
    """On a slow line and a processor six times as slow, nothing on a page moves by more than is called good."""
    wrong = f"/replays/{Game(site, 'bob').upload(game(1, final_score=1))}"
    for path in ("/", "/replays", "/daily", "/leaderboard", "/account", "/players/ann", shared, wrong):
        visitor = visit(width=width)
        visitor.context.add_init_script(SHIFTS)
        tools = visitor.context.new_cdp_session(visitor.page)
        tools.send("Network.enable")
        tools.send("Network.emulateNetworkConditions", SLOW)
        tools.send("Emulation.setCPUThrottlingRate", {"rate": 6})
        visitor.open(path)
        shift = visitor.page.evaluate("window.shifted ?? 0")
        figure(f"{path.split('-')[0]}, {width} px: layout shift {shift:.3f}")
        assert shift < 0.1, path
        visitor.context.close()


def test_cards_that_lie_face_down_can_be_told_in_forced_colours(visit, shared):
    """They keep their pattern, by which they differ from empty places."""
    page = watch(visit(forced_colors="active"), shared)
    kept = "card => getComputedStyle(card).forcedColorAdjust"
    assert page.locator(".column .down").first.evaluate(kept) == "none"
    assert "gradient" in page.locator(".column .down").first.evaluate(
        "card => getComputedStyle(card, '::after').backgroundImage"
    )


def test_a_link_to_a_move_shows_it(visit, shared):
    """The move in the list is in full view, and keys work at once."""
    page = watch(visit(), f"{shared}?move=60")
    box, item = page.locator("#transcript").bounding_box(), page.locator("#transcript [aria-current]").bounding_box()
    assert box["y"] <= item["y"] <= item["y"] + item["height"] <= box["y"] + box["height"]
    page.keyboard.press("ArrowRight")
    assert count(page) == 61


def test_settings_stay(visit, shared):
    """Speed and colours, when the page is loaded again."""
    page = watch(visit(), shared)
    page.select_option("#speed", "4×")
    page.check("#colours")
    page.reload()
    page.wait_for_selector("#player.ready")
    assert page.input_value("#speed") == "4×"
    assert page.is_checked("#colours")
    assert page.evaluate("document.body.classList.contains('four')")


def test_the_board_is_stepped_by_clicks_and_the_wheel(visit, shared):
    """The right half goes on, the left half back; the wheel steps while the board has the focus, and else scrolls."""
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


def test_a_swipe_goes_through_the_moves(visit, shared):
    """To the left on, to the right back, a move for each part of the way; and it is no tap."""
    visitor = visit(width=390, has_touch=True)
    page = watch(visitor, shared)
    box = page.locator("#board").bounding_box()
    tools = visitor.context.new_cdp_session(page)

    def touch(kind, x=None):
        points = [] if x is None else [{"x": box["x"] + x, "y": box["y"] + 100}]
        tools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 300)
    for x in range(290, 170, -10):
        touch("touchMove", x)
    touch("touchEnd")
    assert count(page) in (2, 3)


def test_the_curve_leads_to_a_move(visit, shared):
    """A click in the middle goes to the middle of the game."""
    page = watch(visit(), shared)
    box = page.locator("#curve").bounding_box()
    assert page.get_attribute("#curve polyline", "points").count(",") == int(page.get_attribute("#seek", "max")) + 1
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 10)
    assert abs(count(page) - int(page.get_attribute("#seek", "max")) / 2) <= 1


@pytest.mark.parametrize("path", ["/", "/replays", "/daily", "/leaderboard", "/account", "/players/ann", "shared"])
def test_320_pixels_are_enough(visit, site, shared, path):
    """Nothing is wider than the window, and the header takes two lines at most, also for the longest of names."""
    Game(site, "x" * 32)
    visitor = visit(width=320)
    visitor.sign_in("x" * 32)
    page = visitor.open(shared if path == "shared" else path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.locator("body > header").bounding_box()["height"] < 110
