"""Tests of input on /play: drags by finger, clicks on moving cards, and keys. No input is lost."""

import re

import pytest

from tests.harness.constants import PATIENCE
from tests.pages.player import Fingers, Hand, address, choose, keep, kept, opened, won_game
from tests.pages.visitor import Game, until

PHONE = {"width": 390, "has_touch": True, "is_mobile": True}
LAPTOP = {"width": 1280, "has_touch": True}
# The steps of a drag, the milliseconds before each step, and the number of moves made in this way.
SPEEDS = {"fast": (2, 0, 30), "steady": (8, 12, 16), "slow": (16, 40, 16)}


def moves_made(page, number):
    """Wait until the page counts this number of moves."""
    words = "1 move" if number == 1 else f"{number} moves"
    until(page, f"document.getElementById('moves').textContent === '{words}'", 20)


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("device", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_finger_drags_cards_while_others_move(visit, device, speed):
    """A finger drags single cards and runs while the previous card is still moving. A tap after a drag counts too."""
    visitor = visit(**device)
    replay, moves = won_game(2)
    page = opened(visitor, address(replay))
    page.evaluate("scrollTo(0, 0)")
    hand, fingers = Hand(page), Fingers(page)
    steps, pause, many = SPEEDS[speed]
    for number, move in enumerate(moves[:many], 1):
        if move is None:
            hand.tap(None)
        else:
            source, target, count = move
            fingers.drag(hand.centre(source, count), hand.centre(target), steps=steps, pause=pause)
        moves_made(page, number)
    assert sum(move is not None for move in moves[:many]) >= 9
    assert page.evaluate("scrollY") == 0
    assert page.locator("#board .held, #board .carried").count() == 0


def test_second_finger_cannot_drag(visit):
    """The second finger moves nothing, even to a pile that would take its card. The first one still drops its card."""
    page = opened(visit(**PHONE), "/play?deal=42&draw=one")
    hand, fingers = Hand(page), Fingers(page)
    first, second = (hand.centre("t1"), hand.centre("f0")), (hand.centre("t4"), hand.centre("t6"))
    fingers.press(first[0])
    fingers.move([first[0][0] + 20, first[0][1] - 20])
    until(page, "document.querySelectorAll('#board .held').length === 1")
    fingers.press(second[0], finger=1)
    fingers.move(second[1], finger=1)
    fingers.lift(finger=1)
    assert page.locator("#board .held").count() == 1
    fingers.move(first[1])
    fingers.lift()
    moves_made(page, 1)
    assert kept(page)["moves"] == "fa1"
    fingers.drag(*second, steps=4, pause=5)  # alone, the second finger's drag is a move
    moves_made(page, 2)


def test_click_counts_at_the_target_of_a_moving_card(visit):
    """A click on the waste moves the card that is still on its way there from the stock."""
    visitor = visit()
    replay, moves = won_game(2)
    pairs = [at for at, move in enumerate(moves[1:], 1) if move and move[0] == "w" and moves[at - 1] is None]
    for at in pairs[:3]:
        keep(visitor.page, replay, moves[: at - 1])
        page = opened(visitor)
        hand = Hand(page)
        stock, waste = hand.centre("s"), hand.centre("w")
        page.mouse.click(*stock)
        page.mouse.click(*waste)
        moves_made(page, at + 1)


def test_two_fast_clicks_on_one_pile_are_two_moves(visitor):
    """The clicks move an ace and the ace under it to the foundations."""
    page = opened(visitor, "/play?deal=3&draw=one")
    page.mouse.dblclick(*Hand(page).centre("t2"))
    assert page.inner_text("#moves") == "2 moves"
    assert page.inner_text("#points") == "30 points"


def test_click_with_a_moving_hand_counts(visit):
    """A mouse that moves by 8 pixels, or a finger by 10, between press and release clicks the card."""
    for device in (PHONE, LAPTOP):
        page = opened(visit(**device), "/play?deal=42&draw=one")
        page.evaluate("scrollTo(0, 0)")
        x, y = Hand(page).centre("t1")
        if device == PHONE:
            Fingers(page).drag((x, y), (x, y + 10), steps=2, pause=0)
        else:
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x + 8, y)
            page.mouse.up()
        assert kept(page)["moves"] == "fa1"


def test_click_with_a_moving_hand_keeps_the_selection(visitor):
    """The click moves the selected card to the pile under the mouse."""
    page = opened(visitor, "/play?deal=42&draw=one")
    choose(page, tap=False)
    page.mouse.click(*Hand(page).centre("t4"))
    x, y = Hand(page).centre("t6")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 8)
    page.mouse.up()
    assert kept(page)["moves"] == "ik1"


def test_targets_are_lit_while_a_card_is_held(visitor):
    """The marks show the legal targets of the card, and go when it is dropped."""
    page = opened(visitor, "/play?deal=42&draw=one")
    hand = Hand(page)
    page.mouse.move(*hand.centre("t4"))
    page.mouse.down()
    page.mouse.move(*hand.centre("t1"), steps=3)
    lit = page.evaluate("[...document.querySelectorAll('#board .target')].map(card => card.closest('ol').ariaLabel)")
    assert [label.split(":")[0] for label in lit] == ["Column 7"]
    page.mouse.move(*hand.centre("t6"), steps=3)
    page.mouse.up()
    assert page.locator("#board .target").count() == 0
    assert kept(page)["moves"] == "ik1"


def test_single_click_moves_a_card(visitor):
    """The card moves to its best pile, and the page announces the move."""
    page = opened(visitor, "/play?deal=42&draw=one")
    page.mouse.click(*Hand(page).centre("t1"))
    assert page.inner_text("#moves") == "1 move"
    said = page.text_content("#said")
    assert re.match("Ace of diamonds from column 2 to foundation 1, .* turned up, 15 points", said)


def test_double_click_moves_to_a_foundation_when_a_click_selects(visitor):
    """A double click is one move, but two clicks on the stock or on the target of a selected card."""
    page = opened(visitor, "/play?deal=42&draw=one")
    choose(page, tap=False)
    hand = Hand(page)
    page.mouse.dblclick(*hand.centre("t1"))
    assert kept(page)["moves"] == "fa1"
    page.mouse.dblclick(*hand.centre("s"))
    assert kept(page)["moves"] == "fa1s-0s-0"
    page.mouse.click(*hand.centre("t4"))
    page.mouse.dblclick(*hand.centre("t6"))
    assert kept(page)["moves"] == "fa1s-0s-0ik1"
    assert page.locator("#board .chosen").count() == 1  # the second click has selected the moved card


def moves_and_undos(page):
    game = kept(page)
    return game["moves"], game["undos"]


def test_redo_makes_undone_moves_again(visitor):
    """Each redo is a recorded move, in the order of play, after a reload too."""
    page = opened(visitor, "/play?deal=42&draw=one")
    press = page.keyboard.press
    Hand(page).drag(("t1", "f0", 1))
    Hand(page).stock()
    for keys in ("Control+z", "u", "Control+y"):
        press(keys)
    assert moves_and_undos(page) == ("fa1s-0fa1", [2, 2])
    opened(visitor)
    press("Control+Shift+z")
    assert moves_and_undos(page) == ("fa1s-0fa1s-0", [2, 2])
    press("Control+y")
    assert page.text_content("#said").startswith("Nothing to redo")
    assert page.inner_text("#moves") == "2 moves, 2 undos"


def test_redo_ends_with_another_move(visitor):
    page = opened(visitor, "/play?deal=42&draw=one")
    Hand(page).drag(("t1", "f0", 1))
    page.keyboard.press("Control+z")
    Hand(page).stock()
    page.keyboard.press("Control+y")
    assert moves_and_undos(page) == ("fa1s-0", [1])


def test_win_with_a_redo_is_verified(visit, site):
    """The verdict counts the undo before the redo."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    replay, moves = won_game(2)
    keep(ann.page, replay, moves[:-1])
    page = opened(ann)
    page.click("#undo")
    page.click("#redo")
    Hand(page).drag(moves[-1])
    until(page, "document.getElementById('result').textContent.includes('✓ Score verified')", PATIENCE)
    ann_api = Game(site, login=True)
    (mine,) = ann_api.call("GET", "/api/me/replays")["replays"]
    assert ann_api.call("GET", f"/api/replays/{mine['id']}/verdict")["undos"] == 1


@pytest.mark.parametrize("focus", ["body", "#hint", "#settings summary", "[name=four]", "#board [tabindex='0']"])
def test_keys_work_wherever_the_focus_is(visitor, focus):
    """A click gives the focus to a button or a setting. The keys make a hint, an undo, a redo and a new deal."""
    page = opened(visitor, "/play?deal=42&draw=one")
    Hand(page).drag(("t1", "f0", 1))
    choose(page)
    if focus == "#hint":
        page.click(focus)
    else:
        page.evaluate("selector => (document.activeElement.blur(), document.querySelector(selector).focus())", focus)
    page.keyboard.press("h")
    page.wait_for_selector("#board .hint")
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+y")
    assert moves_and_undos(page) == ("fa1fa1", [1])
    page.keyboard.press("n")
    assert page.is_visible("#leave")


def test_keys_without_ctrl_do_nothing_when_switched_off(visitor):
    """Speech input types letters. The setting survives a reload; Ctrl+Z still works."""
    page = opened(visitor, "/play?deal=42&draw=one")
    choose(page, keys=False)
    opened(visitor)
    Hand(page).drag(("t1", "f0", 1))
    for key in ("u", "h", "n", "?"):
        page.keyboard.press(key)
    assert moves_and_undos(page) == ("fa1", [])
    assert page.locator("#board .hint, dialog[open]").count() == 0
    page.keyboard.press("Control+z")
    assert moves_and_undos(page) == ("fa1", [1])


def test_keys_do_nothing_in_a_field_or_a_dialog(visitor):
    page = opened(visitor, "/play?deal=42&draw=one")
    Hand(page).drag(("t1", "f0", 1))
    page.evaluate("document.querySelector('main').appendChild(document.createElement('input')).focus()")
    page.keyboard.type("hun?")
    assert page.input_value("main > input") == "hun?"
    page.click("#help-open")
    for keys in ("h", "u", "n", "Control+z"):
        page.keyboard.press(keys)
    assert moves_and_undos(page) == ("fa1", [])
    assert page.locator("#board .hint, #leave[open]").count() == 0


def test_card_stays_under_the_pointer_while_the_page_scrolls(visit):
    """The wheel scrolls the page during a drag. The card is dropped where the player sees it."""
    visitor = visit()
    page = opened(visitor, "/play?deal=42&draw=one")
    page.set_viewport_size({"width": 1280, "height": 400})
    until(page, "innerHeight === 400")
    hand = Hand(page)
    page.evaluate("scrollTo(0, 40)")
    x, y = hand.centre("t1")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y + 20)
    page.wait_for_selector(".carried")
    away = """([x, y]) => {
      const { left, top, width, height } = document.querySelector(".carried li").getBoundingClientRect();
      return Math.max(Math.abs(left + width / 2 - x), Math.abs(top + height / 2 - y));
    }"""
    before = page.evaluate(away, [x + 30, y + 20])
    page.mouse.wheel(0, -40)
    until(page, "scrollY === 0")
    until(page, f"({away})([{x + 30}, {y + 20}]) <= {before + 2}")
    page.mouse.move(*hand.centre("f0"))
    page.mouse.up()
    moves_made(page, 1)


def test_taps_count_while_the_cards_are_dealt(visitor):
    """The cards fly for half a second, but their buttons are at their places. The tap ends the flight."""
    page = opened(visitor, "/play?deal=42&draw=one")
    page.evaluate("""() => {
      const { animate } = Element.prototype;
      window.dealt = [];
      Element.prototype.animate = function (frames, timing) {
        const flight = animate.call(this, frames, timing);
        if (timing.fill === "backwards") window.dealt.push(flight) && flight.pause();
        return flight;
      };
    }""")
    page.click("#again")
    until(page, "window.dealt.length >= 56")  # 28 cards with their buttons
    Hand(page).select("t1")
    assert moves_and_undos(page) == ("fa1", [])
    assert page.evaluate("window.dealt.every((flight) => flight.playState === 'idle')")


def test_only_cards_that_turn_are_turned(visitor):
    """Other face-up cards keep their ink still."""
    page = opened(visitor, "/play?deal=42&draw=one")
    page.evaluate("""() => {
      window.turned = [];
      addEventListener("animationstart", ({ target }) => window.turned.push(target.closest("li").className), true);
    }""")
    Hand(page).stock()
    until(page, "window.turned.length")
    Hand(page).select("t1")
    until(page, "window.turned.length > 1")
    page.wait_for_timeout(300)
    assert page.evaluate("window.turned.length") == 2
