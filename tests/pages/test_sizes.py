"""Tests of the board in windows of many sizes and settings: ranks are readable, and each tap shows something."""

import pytest

from tests.pages.player import Fingers, Hand, keep, opened, won_game
from tests.pages.visitor import Game, until

PHONE = {"has_touch": True, "reduced_motion": "reduce"}
# The strip that the next card leaves of each card, and the height of its rank, in pixels.
STRIPS = """() => [...document.querySelectorAll("#board .column")].flatMap(({ children }) => {
  const cards = [...children].filter((card) => !card.matches(".down")).map((card) => card.getBoundingClientRect());
  const large = getComputedStyle(document.querySelector("#board .large")).display !== "none";
  return cards.slice(1).map((card, index) => [card.top - cards[index].top, card.width * (large ? 0.256 : 0.33)]);
})"""


def opened_in(visit, width, height, *, moves=100, settings=None, scale=1, path="/play", **options):
    """Open a game with a column of eleven open cards in a window of this size."""
    visitor = visit(device_scale_factor=scale, **{**PHONE, **options})
    visitor.page.set_viewport_size({"width": width, "height": height})
    replay, made = won_game(1)
    keep(visitor.page, replay, made[:moves], ms=192_000)
    visitor.page.evaluate("chosen => localStorage.setItem('solisync.play', JSON.stringify(chosen))", settings or {})
    return opened(visitor, path)


@pytest.mark.parametrize(
    ("width", "height", "settings"),
    [
        (740, 300, {}),
        (844, 390, {}),
        (360, 612, {}),
        (320, 256, {}),
        (1440, 900, {}),
        (740, 300, {"large": True}),
        (390, 844, {"large": True}),
        (1440, 900, {"large": True}),
        (1920, 1080, {"large": True}),
    ],
)
def test_ranks_of_covered_cards_are_whole(visit, width, height, settings):
    """The next card leaves at least the height of the rank free: in landscape, in large print and at 400 %."""
    page = opened_in(visit, width, height, settings=settings)
    strips = page.evaluate(STRIPS)
    assert len(strips) >= 16
    assert all(strip >= rank for strip, rank in strips), strips


def test_board_begins_near_the_top_of_a_phone(visit, site):
    """The header is one row of 44 pixels, also with a streak and a player, and the day's goal has a line."""
    visitor = visit(**PHONE)
    visitor.register("a_player_with_a_long_name")
    page = visitor.page
    today = Game(site).call("GET", "/api/daily-challenge")["date"]
    page.evaluate("today => localStorage.setItem('solisync.streak', `1234 ${today} a_player_with_a_long_name`)", today)
    page.set_viewport_size({"width": 360, "height": 612})
    page = opened(visitor, "/play?daily")
    until(page, "document.getElementById('streak').textContent")
    assert page.locator("body > header").bounding_box()["height"] == 44
    assert page.locator("#board").bounding_box()["y"] <= 110
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_board_at_400_percent_has_cards_of_100_device_pixels(visit):
    """The controls are below the board, not over it."""
    page = opened_in(visit, 320, 256, scale=4)
    board, tools = page.locator("#board").bounding_box(), page.locator(".tools").bounding_box()
    assert 4 * page.locator("#board li").last.bounding_box()["width"] >= 100
    assert board["y"] <= 256 / 3
    assert tools["y"] >= board["y"] + board["height"]


def test_waste_of_the_left_hand_opens_to_the_left(visit):
    """The ranks are on the right of the cards, so that the lower cards of the waste show theirs."""
    page = opened_in(visit, 360, 612, settings={"left": True})
    places = page.evaluate("""() => [...document.querySelectorAll("#board .waste li")].slice(-3).map((card) => [
      card.getBoundingClientRect().left,
      card.querySelector(".small .index").getBoundingClientRect().left])""")
    cards, ranks = zip(*places, strict=True)
    assert list(cards) == sorted(cards, reverse=True)
    assert len(set(cards)) == 3
    width = page.locator("#board li").last.bounding_box()["width"]
    assert all(rank >= above + width for above, rank in zip(cards[1:], ranks[:-1], strict=True)), (places, width)


def test_swipe_on_the_felt_scrolls_nothing(visit):
    """The page could be scrolled: it is higher than the window."""
    page = opened_in(visit, 390, 844, is_mobile=True)
    box = page.locator("#board").bounding_box()
    assert page.evaluate("document.documentElement.scrollHeight") > 1_000
    x, y = box["x"] + 8, box["y"] + box["height"] - 20
    Fingers(page).drag((x, y), (x, y - 300), steps=6, pause=16)
    page.wait_for_timeout(300)
    assert page.evaluate("scrollY") == 0
    assert page.evaluate("getComputedStyle(document.body).overscrollBehaviorY") == "none"


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_refused_tap_shows_something(visit, motion):
    """The card shakes, or with reduced motion has a frame for a moment."""
    page = opened_in(visit, 390, 844, moves=0, reduced_motion=motion)
    page.evaluate("""() => {
      window.shown = [];
      const { animate } = Element.prototype;
      Element.prototype.animate = function (...given) {
        window.shown.push("moved");
        return animate.apply(this, given);
      };
      new MutationObserver(() => document.querySelector("#board .refused") && window.shown.push("framed"))
        .observe(document.getElementById("board"), { subtree: true, attributeFilter: ["class"] });
    }""")
    page.touchscreen.tap(*Hand(page).centre("f0"))
    page.touchscreen.tap(*Hand(page).centre("t0"))
    assert set(page.evaluate("window.shown")) >= {"framed" if motion == "reduce" else "moved"}


@pytest.mark.parametrize(
    "look", [{}, {"scheme": "dark"}, {"forced_colors": "active"}, {"reduced_motion": "no-preference"}], ids=str
)
@pytest.mark.parametrize(("width", "height"), [(360, 612), (390, 844), (740, 300), (1440, 900), (320, 256)])
def test_game_can_be_played_in_each_window_and_look(visit, width, height, look):
    """Nothing is wider than the window, a tap on the stock counts, and a selected card is marked."""
    page = opened_in(visit, width, height, moves=0, settings={"tap": False}, **look)
    page.touchscreen.tap(*Hand(page).centre("s"))
    until(page, "document.getElementById('moves').textContent === '1 move'")
    page.touchscreen.tap(*Hand(page).centre("w"))
    assert page.locator("#board .chosen, #board .refused").count() == 1 or page.inner_text("#said")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("#undo").is_enabled()


def test_undo_says_where_it_ends(visit):
    """The service accepts no deeper undo."""
    page = opened_in(visit, 390, 844, moves=70)
    for _ in range(64):
        page.keyboard.press("Control+z")
    assert page.inner_text("#moves") == "6 moves, 64 undos"
    page.tap("#undo")
    until(page, "document.querySelector('#said.toast')?.textContent === 'Undo goes back 64 moves at most'")


@pytest.mark.parametrize("path", ["/", "/daily"])
def test_deals_are_drawn_with_the_cards_of_the_table(visit, path):
    """Each face is the one of the same card on the board."""
    visitor = visit()
    page = visitor.open(path)
    drawn = page.locator(".deal b").evaluate_all("(cards) => cards.map((card) => card.innerHTML)")
    opened(visitor, "/play?daily")
    faces = page.evaluate("""() => [...document.querySelectorAll("#board .column li:last-child svg")]
      .map((face) => face.outerHTML)""")
    assert drawn == faces
    assert len(set(drawn)) == 7
