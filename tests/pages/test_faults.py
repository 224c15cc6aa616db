"""What the original's pages did badly, by the numbers of its list; what concerns a game to play is not here."""

import json
import re
from itertools import pairwise

import pytest

from tests.checking.uploads import game
from tests.harness.constants import PASSWORD
from tests.pages.visitor import Game, until

PATHS = ("/", "/replays", "/daily", "/leaderboard", "/account", "/daily/2026-04-26")
CARDS = """() => [...document.querySelectorAll("#board .card")].map(card => card.getBoundingClientRect())
  .filter(box => box.width).map(box => [box.left, box.top, box.right, box.bottom])"""


@pytest.fixture
def ann(site):
    return Game(site)


def watch(visitor, replay_id, query=""):
    page = visitor.open(f"/replays/{replay_id}{query}")
    page.wait_for_selector("#player.ready")
    return page


def test_1_seeds_near_2_to_the_64(visitor, ann):
    """Are shown to the last digit, and the deal is the one that was played."""
    replay = next(each for each in (game(number) for number in range(6)) if each["seed"] > 2**63)
    page = watch(visitor, ann.upload(replay))
    assert page.inner_text("#deal") == str(replay["seed"])
    page.click("#last")
    assert f"Won with {replay['final_score']} points" in page.inner_text("#now")


def test_2_no_moves_say_so(visitor, ann):
    page = visitor.open(f"/replays/{ann.upload({**game(), 'moves': []})}")
    assert "no moves" in page.inner_text("#verdict")
    assert page.is_hidden("#player")


def test_4_the_end_has_the_score_of_the_caption(visitor, ann):
    for undo in (False, True):
        replay = game(1, undo=undo)
        page = watch(visitor, ann.upload(replay))
        page.click("#last")
        assert page.inner_text("#points") == f"{replay['final_score']} points"
        assert page.inner_text("h1").endswith(f"won with {replay['final_score']} points")


def test_7_draw_three_is_called_draw_three(visitor, ann):
    replay = next(each for each in (game(number) for number in range(6)) if each["draw_mode"] == "DrawThree")
    ann.upload(replay)
    page = visitor.open("/replays")
    assert "Draw three" in page.inner_text("#list tbody tr")


def test_8_refusals_say_what_is_wrong(visitor, ann):
    """In words for players, at the field that they are about."""
    page = visitor.open("/account")
    for name, password, words, field in (
        ("ann", PASSWORD, "That user name is taken. Please choose another one.", "new-name"),
        ("a!", PASSWORD, "Choose a user name of 3 to 32 characters.", "new-name"),
        ("bob", "short", "Choose a password of at least 8 characters.", "new-password"),
    ):
        page.fill("#new-name", name)
        page.fill("#new-password", password)
        page.click("#new-form button.main")
        until(page, f"document.querySelector('#new-form .refused')?.textContent === {json.dumps(words)}")
        assert page.evaluate("document.activeElement.id") == field
        described = page.get_attribute(f"#{field}", "aria-describedby").split()
        assert words in " ".join(page.text_content(f"#{id}") for id in described)


def test_9_a_login_lasts_and_leaves_no_others_behind(visitor, ann):
    """The refresh token is used: page after page is one session."""
    visitor.sign_in()
    for path in PATHS:
        visitor.open(path)
    visitor.open("/account")
    assert visitor.page.locator("#devices tbody tr").count() == 2  # this one, and the game's


def test_10_and_11_no_stranger_no_inline_script(visitor, ann):
    """Nothing is asked of other hosts, and the policy forbids what is inline."""
    replay_id = ann.upload(game())
    for path in (*PATHS, f"/replays/{replay_id}"):
        page = visitor.open(path)
        assert (
            page.locator("script:not([src]):not([type='application/json']), style, [style*='url'], [onclick]").count()
            == 0
        )
    assert visitor.elsewhere == []
    page.evaluate("""() => {
      const script = document.createElement("script");
      try { script.textContent = "window.ran = 1"; document.body.append(script); } catch {}
      try { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = 1'>"); } catch {}
    }""")
    assert page.evaluate("window.ran") is None
    assert any("policy" in text for text in visitor.complaints)  # the test would see a report
    visitor.complaints.clear()


def test_13_boards_say_why_they_ask(visitor, ann):
    for path, place in (("/leaderboard", "#asked"), ("/daily", "#winners")):
        assert "chose to appear" in visitor.open(path).inner_text(place)


def test_14_the_share_page_has_it_all(visitor, ann):
    replay = game()
    page = watch(visitor, ann.upload(replay))
    assert page.title().startswith(f"ann won with {replay['final_score']} points")
    assert page.inner_text("h1") == f"ann won with {replay['final_score']} points"
    for name in ("Start", "Previous move", "Play", "Next move", "End", "Keys"):
        assert page.get_by_role("button", name=name, exact=True).is_visible()
    assert page.get_by_role("slider", name="Move").is_visible()
    assert page.get_by_role("combobox", name="Speed").is_visible()
    page.click(".brand")
    page.wait_for_url(f"{visitor.site}/")


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_15_to_17_every_card_is_on_the_felt(visit, ann, width):
    """Slots lie where cards lie, none sticks out, and 19 cards fit in a column, each with its rank in view."""
    visitor = visit(width=width)
    page = watch(visitor, ann.upload(game(1)), "?move=60")
    felt = page.locator("#board").bounding_box()
    right, bottom = felt["x"] + felt["width"], felt["y"] + felt["height"]
    for _ in range(5):
        page.keyboard.press("Shift+ArrowRight")
        for box in page.evaluate(CARDS):
            assert felt["x"] <= box[0] < box[2] <= right
            assert felt["y"] <= box[1] < box[3] <= bottom
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
      const {Board, positions} = await import("/web/board.js");
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


def test_18_a_replay_that_is_not_there_has_no_player(visitor):
    page = visitor.page
    assert page.goto("/replays/00000000-0000-4000-8000-000000000000").status == 404
    assert page.inner_text("h1") == "Nothing here"
    assert page.locator("#play").count() == 0


def test_19_difficulty_has_a_name(visitor, ann):
    replay_id = ann.upload({**game(), "mode": {"Difficulty": "Hard"}})
    assert "Difficulty" in visitor.open("/replays").inner_text("#list tbody tr")
    page = visitor.open(f"/replays/{replay_id}")
    assert page.inner_text("#mode") == "Difficulty"
    assert "[object" not in page.inner_text("body")


def test_22_foundations_are_nobodys(visitor, ann):
    """Any ace goes to any of them, so an empty one hints at no suit."""
    page = watch(visitor, ann.upload(game()))
    labels = page.locator(".foundation").evaluate_all("lists => lists.map(list => list.getAttribute('aria-label'))")
    assert labels == [f"Foundation {number}: empty" for number in range(1, 5)]


def test_23_cards_have_names(visitor, ann):
    """13 named lists in a named region, each card an item with a name, and a live region."""
    page = watch(visitor, ann.upload(game()))
    board = page.get_by_role("region", name="Board")
    assert board.get_by_role("list").count() == 13
    labels = board.get_by_role("list").evaluate_all("lists => lists.map(list => list.getAttribute('aria-label'))")
    assert labels[0] == "Stock: 24 face down"
    assert re.fullmatch(r"Column 3: 2 face down, \w+ of \w+", labels[8])
    assert re.search(r"\w+ of (clubs|diamonds|hearts|spades)", board.get_by_role("listitem").last.inner_text())
    assert page.get_by_role("status").get_attribute("aria-atomic") == "true"


def test_25_the_keyboard_reaches_everything_and_sees_where_it_is(visitor, ann):
    """Tab goes through all that can be used, and each has an outline while it has the focus."""
    replay_id = ann.upload(game())
    visitor.sign_in()
    for path in ("/", "/replays", "/leaderboard", "/daily", "/account", f"/replays/{replay_id}"):
        page = visitor.open(path)
        wanted = page.evaluate("""() => [...document.querySelectorAll(
          "a[href], summary, button:enabled, input:enabled, select:enabled, [tabindex='0']")]
          .filter(each => each.checkVisibility() && !each.closest("#transcript") && each.tabIndex === 0).length""")
        reached = set()
        for _ in range(wanted + 230):
            page.keyboard.press("Tab")
            found = page.evaluate("""() => {
              const it = document.activeElement;
              if (it === document.body) return null;
              it.dataset.seen ??= Math.random();
              const seen = it.id === "file" ? it.previousElementSibling : it;
              return [it.dataset.seen, getComputedStyle(seen).outlineStyle, it.outerHTML,
                !!it.closest("#transcript")];
            }""")
            if found is None:
                break
            key, outline, html, in_transcript = found
            assert outline != "none", html
            if not in_transcript:
                reached.add(key)
        assert len(reached) == wanted, path
    tab = visitor.open("/leaderboard")
    tab.focus("#tab-verified")
    tab.keyboard.press("ArrowRight")
    assert tab.is_visible("#reported")
    assert tab.evaluate("document.activeElement.id") == "tab-reported"


def test_26_less_motion_is_none(visit, ann):
    """Cards are there at once, and autoplay makes at most one move a second."""
    visitor = visit(reduced_motion="reduce")
    page = watch(visitor, ann.upload(game()))
    faster = page.locator("#speed option:disabled").all_text_contents()
    assert faster == ["2×", "4×", "8×"]  # which would have no effect
    page.click("#next")
    assert page.evaluate("document.getAnimations().length") == 0
    page.click("#play")
    page.wait_for_timeout(2600)
    assert page.evaluate("document.getAnimations().length") == 0
    assert int(page.inner_text("#count").split("/")[0]) in (2, 3, 4)
    page.click("#play")
    lively = visit()
    page = watch(lively, ann.upload(game()))
    page.click("#next")
    assert page.evaluate("document.getAnimations().length") > 0


def test_27_rows_are_links_with_a_date(visitor, ann):
    replay_id = ann.upload(game())
    page = visitor.open("/replays")
    row = page.locator("#list tbody tr")
    assert row.get_by_role("link").get_attribute("href") == f"/replays/{replay_id}"
    assert re.fullmatch(r"\d+ \w+ ago", row.locator("time").inner_text())
    assert re.fullmatch(r"\d+ \w+ \d{4}( at \d\d:\d\d)?", row.locator("time").get_attribute("title"))
    page.select_option("[name=mode]", "Zen")
    assert page.locator("#list tr").count() == 0
    page.reload()
    visitor.settle()
    assert page.input_value("[name=mode]") == "Zen"
    assert "None of the newest" in page.inner_text("#list")
