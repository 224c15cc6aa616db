"""Tests of /play: a game is played by any means, survives reloads, and is verified after its upload."""

import re

import pytest

from solisync.klondike.deal import deal
from solisync.klondike.game import Game as Engine
from solisync.klondike.rules import STOCK_CLICK, Move
from solisync.klondike.scoring import MAY_19
from tests.harness.constants import PATIENCE
from tests.klondike.vectors import read
from tests.pages.player import JOURNALS, Hand, address, choose, journals, keep, kept, opened, until_journals, won_game
from tests.pages.visitor import Game, until


def uploaded(page):
    """Wait for the upload of the won game, and return the id of its replay."""
    return until_journals(page, f"Object.values({JOURNALS}.uploaded)[0]")


def said(page):
    return page.text_content("#said").rstrip("\u00a0")


def check_upload(site, page, replay):
    """Check that the upload is verified without undos, is on the deal's board, and has the played moves."""
    ann = Game(site, login=True)
    replay_id = uploaded(page)
    until(page, "document.getElementById('result').textContent.includes('✓ Score verified')", PATIENCE)
    verdict = ann.call("GET", f"/api/replays/{replay_id}/verdict")
    assert (verdict["status"], verdict["undos"], verdict["score"]) == ("verified", 0, replay["final_score"])
    assert ann.call("GET", f"/api/replays/{replay_id}")["moves"] == replay["moves"]
    board = ann.call("GET", f"/api/boards/deals/{replay['seed']}/{replay['draw_mode']}")["entries"]
    assert [entry["replay_id"] for entry in board] == [replay_id]
    until(page, "document.getElementById('result').textContent.includes('Place 1 on the board of this deal')")


def test_win_by_dragging_is_verified_and_ranked(visit, site):
    """The heading has the focus after the win, and the page announces how the game ended."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    Game(site, login=True).seen_as("Ann")
    replay, moves = won_game(0)
    page = opened(ann, address(replay))
    hand = Hand(page)
    for move in moves:
        hand.drag(move)
    time = page.inner_text("#time")
    until(page, "document.activeElement.id === 'won-heading'")
    assert page.text_content("#won-heading") == f"Won in {time} with {replay['final_score']} points"
    check_upload(site, page, replay)


def test_win_by_tapping_on_a_phone(visit, site):
    """The first tap of a finger selects a card, and the second tap moves it."""
    ann = visit(width=390, has_touch=True, is_mobile=True, reduced_motion="reduce")
    ann.register()
    Game(site, login=True).seen_as("Ann")
    replay, moves = won_game(2)  # this game has the fewest taps on the stock, which are slow
    page = opened(ann, address(replay))
    choose(page, tap=False)
    page.evaluate("scrollTo(0, 0)")
    hand = Hand(page)
    for move in moves:
        hand.tap(move)
    check_upload(site, page, replay)


def test_win_by_keyboard(visit, site):
    """The focus follows the moved card, and the live region announces each move and its points."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    Game(site, login=True).seen_as("Ann")
    replay, moves = won_game(2)
    page = opened(ann, address(replay))
    page.focus("#board [tabindex='0']")
    hand = Hand(page)
    engine = Engine(deal(replay["seed"]), MAY_19, draw=read(replay).draw)
    for number, (move, recorded) in enumerate(zip(moves, read(replay).moves, strict=True)):
        before = engine.score
        hand.key(move)
        engine.play(recorded)
        if number == len(moves) - 1:
            break
        words = said(page)
        points = engine.score - before
        assert not points or words.endswith(f"{abs(points)} points") or "turned up" in words, words
        name = page.evaluate("document.activeElement.getAttribute('aria-label')")
        if recorded == STOCK_CLICK:
            assert name.startswith("stock")
        else:
            pile = f"column {int(move[1][1]) + 1}" if move[1][0] == "t" else f"foundation {int(move[1][1]) + 1}"
            assert name.endswith(f", {pile}"), (name, move)
    check_upload(site, page, replay)


def test_card_that_fits_nowhere_is_announced(visitor):
    page = opened(visitor, "/play?deal=42&draw=one")
    hand = Hand(page)
    page.mouse.click(*hand.centre("t0"))
    assert said(page) == "jack of hearts does not fit anywhere"
    page.mouse.move(*hand.centre("t0"))
    page.mouse.down()
    page.mouse.move(*hand.centre("t2"), steps=4)
    assert page.locator("#board .held").count() == 1
    page.mouse.up()
    assert said(page) == "jack of hearts does not fit on column 3"
    assert page.locator("#board .held, #board .chosen").count() == 0
    assert kept(page)["moves"] == ""


@pytest.mark.parametrize("end", ["Escape", "resize", "hidden", "outside"])
def test_drag_can_be_cancelled(visitor, end):
    """The cards return to their pile, and the next drag works."""
    page = opened(visitor, "/play?deal=42&draw=one")
    hand = Hand(page)
    home = hand.centre("t1")
    page.mouse.move(*home)
    page.mouse.down()
    page.mouse.move(*hand.centre("f0"), steps=3)
    if end == "Escape":
        page.keyboard.press("Escape")
    elif end == "resize":
        page.set_viewport_size({"width": 1100, "height": 800})
        until(page, "innerWidth === 1100")
        page.set_viewport_size({"width": 1280, "height": 860})
        until(page, "innerWidth === 1280 && !document.querySelector('#board .held')")
    elif end == "hidden":
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    else:
        page.mouse.move(5, 855)
    page.mouse.up()
    assert page.locator("#board .held").count() == 0
    assert hand.centre("t1") == home
    assert kept(page)["moves"] == ""
    hand.drag(("t1", "f0", 1))
    assert page.inner_text("#moves") == "1 move"


def test_undos_cost_points_and_are_uploaded(visit, site):
    """The upload has the undos of several depths at their places, and the score that the page showed."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    replay, moves = won_game(3)
    page = opened(ann, address(replay))
    hand = Hand(page)
    choose(page, tap=False)
    places = []
    for number, move in enumerate(moves):
        hand.drag(move)
        depth = {5: 1, 20: 3, 40: 1}.get(number, 0)
        for _ in range(depth):
            page.click("#undo")
            places.append(number + 1 + sum({5: 1, 20: 3}.get(before, 0) for before in range(number)))
        for undone in moves[number + 1 - depth : number + 1]:
            hand.drag(undone)
    ann_api = Game(site, login=True)
    replay_id = uploaded(page)
    body = ann_api.call("GET", f"/api/replays/{replay_id}")
    assert body["undo_places"] == places
    until(page, "document.getElementById('result').textContent.includes('✓ Score verified')", PATIENCE)
    verdict = ann_api.call("GET", f"/api/replays/{replay_id}/verdict")
    assert (verdict["undos"], verdict["score"]) == (5, body["final_score"])
    assert "5 undos" in page.text_content("#won-heading")
    steps = ann_api.call("GET", f"/api/replays/{replay_id}/timeline")["steps"]
    assert [step["input"] for step in steps].count("undo") == 5


def test_game_survives_reloads(visit):
    """Every move survives a reload, a visit to another page and a closed tab, during a game and during a drag."""
    visitor = visit()
    replay, moves = won_game(1)
    page = opened(visitor, address(replay))
    hand = Hand(page)
    for move in moves[:12]:
        hand.drag(move)
    page.click("#undo")
    before = kept(page)
    shown = page.inner_text("#points"), page.inner_text("#moves")
    texts = page.locator("#board ol").evaluate_all("lists => lists.map(list => list.getAttribute('aria-label'))")

    def same(page):
        until(page, "!document.getElementById('board').inert")
        now = kept(page)
        assert {**now, "ms": 0} == {**before, "ms": 0}
        assert abs(now["ms"] - before["ms"]) < 20_000
        assert (page.inner_text("#points"), page.inner_text("#moves")) == shown
        assert (
            page.locator("#board ol").evaluate_all("lists => lists.map(list => list.getAttribute('aria-label'))")
            == texts
        )
        assert page.is_enabled("#undo")

    opened(visitor)
    same(page)
    page.mouse.move(*hand.centre("t6"))
    page.mouse.down()
    page.mouse.move(300, 500, steps=3)
    page.reload()
    opened(visitor)
    same(page)
    page.goto("/replays")
    page.go_back()
    until(page, "document.querySelector('#board li')")
    same(page)
    page.close()
    visitor.page = page = visitor.context.new_page()
    opened(visitor)
    same(page)


@pytest.mark.parametrize(
    "change",
    [
        {"moves": "abcdefghi"},
        {"moves": "s-0" * 1_000_000},
        {"moves": 7},
        {"undos": "x"},
        {"undos": [99]},
        {"deal": "18446744073709551616"},
        {"deal": 42},
        {"draw": 2},
        {"id": "<b>"},
        {"ms": "1e9"},
        {"day": {"date": "x"}},
        {"board": {"f0": [0, 1, 2]}, "score": 745},
    ],
)
def test_edited_storage_is_not_trusted(visit, change):
    """The page discards an impossible game, and ignores a stored board or score."""
    visitor = visit()
    replay, moves = won_game(0)
    page = opened(visitor, "/play?deal=1&draw=one")
    keep(page, replay, moves[:10])
    page.evaluate(
        "change => localStorage.setItem('solisync.game',"
        " JSON.stringify({...JSON.parse(localStorage['solisync.game']), ...change}))",
        change,
    )
    opened(visitor)
    taken_up = kept(page)["deal"] == str(replay["seed"])
    assert taken_up == ("board" in change)
    assert page.inner_text("#moves").startswith("10 moves" if taken_up else "0 moves")
    assert page.inner_text("#points") != "745 points"


def test_storage_without_valid_json_is_ignored(visitor):
    page = opened(visitor)
    page.goto("/replays")
    page.evaluate("() => { for (const key of ['game', 'play']) localStorage.setItem(`solisync.${key}`, '{') }")
    opened(visitor)
    assert page.inner_text("#moves") == "0 moves"


LINKS = {
    "?deal=18446744073709551615&draw=three": ("18446744073709551615", "three"),
    "?seed=9007199254740993&draw3": ("9007199254740993", "three"),
    "?deal=0": ("0", "one"),
    "?deal=1&draw=constructor": ("1", "one"),
    "?deal=01": None,
    "?deal=-1": None,
    "?deal=1000000000000000000000000000000": None,
    "?deal=<b>deal</b>": None,
    "?deal=": None,
}


@pytest.mark.parametrize("query", LINKS)
def test_link_to_a_deal_deals_it(visitor, query):
    """The page names a deal in the address that doesn't exist, and deals another one."""
    page = opened(visitor, f"/play{query}")
    if LINKS[query]:
        seed, draw = LINKS[query]
        assert page.url.endswith(f"/play?deal={seed}&draw={draw}")
        assert kept(page)["draw"] == {"one": 1, "three": 3}[draw]
        label = page.locator("#board ol").nth(6).get_attribute("aria-label")
        top = deal(int(seed))[4][-1]
        ranks = ("ace", *map(str, range(2, 11)), "jack", "queen", "king")
        assert label == f"Column 1: {ranks[top % 13]} of {('clubs', 'diamonds', 'hearts', 'spades')[top // 13]}"
        assert page.inner_text("#notice") == ""
    else:
        assert page.inner_text("#notice").startswith("There is no deal “")
        assert re.search(r"deal=\d+&draw=one$", page.url)


def test_deal_of_the_day_shows_its_goal(visitor, site):
    """The game still belongs to its day after the next day has begun."""
    today = Game(site).call("GET", "/api/daily-challenge")
    page = opened(visitor, "/play?daily&draw=three")
    assert kept(page)["deal"] == str(today["seed"])
    assert kept(page)["day"]["date"] == today["date"]
    assert page.inner_text("#goal").startswith(today["description"])
    tomorrow = {**today, "date": "2999-01-01", "seed": 7}
    visitor.context.route("**/api/daily-challenge", lambda route: route.fulfill(json=tomorrow))
    opened(visitor)
    assert kept(page)["day"]["date"] == today["date"]


def test_link_to_a_deal_asks_before_it_replaces_a_game(visitor):
    """The page asks only if the game has moves, and keeps the game if the player stays."""
    page = opened(visitor, "/play?deal=42&draw=one")
    Hand(page).stock()
    page.goto("/play?deal=43&draw=one")
    page.wait_for_selector("#leave[open]")
    page.click("#leave button[value=stay]")
    assert page.inner_text("#moves") == "1 move"
    assert page.url.endswith("deal=42&draw=one")
    page.goto("/play?deal=43&draw=one")
    page.wait_for_selector("#leave[open]")
    page.click("#leave button[value=leave]")
    page.wait_for_url("**deal=43&draw=one")
    until(page, "document.getElementById('moves').textContent === '0 moves'")


def test_new_deal_asks_and_counts_the_game_as_lost(visitor):
    page = opened(visitor, "/play?deal=42&draw=one")
    page.click("#again")
    assert not page.is_visible("#leave")  # the game has no moves
    Hand(page).stock()
    page.click("#again")
    page.keyboard.press("Escape")
    assert page.inner_text("#moves") == "1 move"
    page.click("#new")
    page.click("#leave button[value=leave]")
    until(page, "document.getElementById('moves').textContent === '0 moves'")
    journal = journals(page, f"{JOURNALS}.of['']")
    assert [(game["won"], game["score"]) for game in journal["games"]] == [(False, 0)]
    assert journal["wins"] == []


def test_clock_runs_only_while_the_player_can_play(visit):
    """The first move starts the clock. An open dialog or a hidden page stops it, and a long sleep isn't counted."""
    visitor = visit()
    page = opened(visitor, "/play?deal=42&draw=one")
    page.clock.install(time=0)
    opened(visitor)
    page.clock.pause_at(3600)  # from here on, the test moves the time

    def passed(seconds):
        before = kept(page)["ms"]
        for _ in range(seconds * 4):
            page.clock.run_for(250)
        return (kept(page)["ms"] - before) / 1000

    assert passed(3) == 0
    Hand(page).stock()
    assert 4 <= passed(5) <= 5.3
    assert page.inner_text("#time") in ("0:04", "0:05")
    page.click("#help-open")
    assert passed(3) <= 1
    page.keyboard.press("Escape")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    assert passed(3) <= 1
    page.evaluate("delete document.hidden")
    before = kept(page)["ms"]
    page.clock.fast_forward(86_400_000)  # the computer sleeps for a day
    page.clock.run_for(1000)
    assert kept(page)["ms"] - before < 5_000


@pytest.mark.parametrize("stock", [True, False], ids=["stock", "no stock"])
def test_finish_button_wins_and_scores_like_play_by_hand(visit, stock):
    """The button appears when no card is face down, also with cards in stock and waste."""
    visitor = visit()
    replay, moves = won_game(0)
    page = opened(visitor)
    engine = Engine(deal(replay["seed"]), MAY_19, draw=read(replay).draw)
    so_far = 0
    for move in read(replay).moves:
        if all(c < 64 for pile in engine.board[4:11] for c in pile) and (stock or not any(engine.board[11:])):
            break
        engine.play(move)
        so_far += 1
    assert any(engine.board[11:]) == stock
    keep(page, replay, moves[:so_far])
    opened(visitor)
    page.click("#finish")
    page.wait_for_selector("#won:not([hidden])")
    for letters in re.findall("...", kept(page)["moves"])[so_far:]:
        engine.play(STOCK_CLICK if letters == "s-0" else Move(*map("abcdefghijk_l".index, letters[:2]), 1))
    assert engine.won
    assert page.inner_text("#points") == f"{engine.score} points"
    assert not page.is_visible("#finish")
    assert page.is_disabled("#undo")


def test_hints_show_one_move_after_another(visitor):
    """Each press shows the next hint, and the player can make its move."""
    visitor.context.add_init_script("delete window.Worker")  # a solver may suggest another move first
    page = opened(visitor, "/play?deal=42&draw=one")
    page.click("#hint")
    until(page, "document.getElementById('said').textContent === 'Hint: ace of diamonds to foundation 1'")
    assert page.locator("#board .hint").count() == 2
    page.click("#hint")
    until(page, "!document.getElementById('said').textContent.includes('foundation 1')")
    page.focus("#board [tabindex='0']")
    page.keyboard.press("s")
    page.keyboard.press("Enter")
    assert page.locator("#board .hint").count() == 0


def test_hint_asks_the_solver_in_a_worker(visitor):
    page = opened(visitor, "/play?deal=42&draw=one")
    with page.expect_event("worker") as started:
        page.click("#hint")
    assert started.value.url.endswith("/search.js")
    page.wait_for_selector("#board .hint")


def test_settings_survive_a_reload(visit):
    """The settings are draw mode, taps, four colours, large print and left-handed, with the stock at the right."""
    visitor = visit()
    page = opened(visitor, "/play?deal=42")
    choose(page, four=True, large=True, left=True)
    page.check("[name=draw][value='3']")
    opened(visitor)
    assert page.evaluate("document.body.className") == "play four print left"
    hand = Hand(page)
    assert hand.centre("s")[0] > hand.centre("w")[0] > hand.centre("f3")[0] > hand.centre("f0")[0]
    page.click("#new")
    until(page, "document.getElementById('drawn').textContent === 'Draw three'")
    choose(page, winnable=True)
    page.click("#new")
    until(
        page,
        "document.getElementById('moves').textContent === '0 moves' && !document.querySelector('#notice .bar')",
        60,
    )


def test_second_tab_can_take_over_the_game(visit):
    """The second tab can't play until it takes over the game, in its current state."""
    visitor = visit()
    first = opened(visitor, "/play?deal=42&draw=one")
    Hand(first).stock()
    visitor.page = second = visitor.context.new_page()
    opened(visitor)
    assert "open in another tab" in second.inner_text("#notice")
    assert second.evaluate("document.getElementById('board').inert")
    second.click("#notice button")
    until(second, "document.getElementById('moves').textContent === '1 move'")
    until(first, "document.getElementById('board').inert")
    Hand(second).stock()
    first.bring_to_front()
    first.click("#notice button")
    until(first, "document.getElementById('moves').textContent === '2 moves'")


def test_second_tab_can_take_over_without_locks(visit):
    """Browsers have no navigator.locks over plain HTTP, so the tabs send each other messages."""
    visitor = visit()
    visitor.context.add_init_script("Object.defineProperty(navigator, 'locks', {value: undefined})")
    opened(visitor, "/play?deal=42&draw=one")
    first = visitor.page
    visitor.page = second = visitor.context.new_page()
    opened(visitor)
    assert "open in another tab" in second.inner_text("#notice")
    second.click("#notice button")
    until(first, "document.getElementById('board').inert")
    until(second, "!document.getElementById('board').inert")


def test_loaded_page_plays_without_a_network(visit, site):
    """The page plays a game to its end, stores the win, and uploads it when the network is back."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    replay, moves = won_game(0)
    page = opened(ann)
    ann.settle()
    keep(page, replay, moves[:-3])
    opened(ann)
    ann.settle()
    ann.context.set_offline(True)
    hand = Hand(page)
    for move in moves[-3:]:
        hand.drag(move)
    until(page, "document.getElementById('outbox').textContent.includes('Not connected: 1 win waits to be sent')")
    kept_here = "Saved on this device. It will be sent when you’re back online."
    assert kept_here in page.inner_text("#result")
    page.click("#won-next button.main")  # the next game also starts without a network
    until(page, "document.getElementById('moves').textContent === '0 moves'")
    ann.context.set_offline(False)
    replay_id = uploaded(page)
    assert Game(site, login=True).call("GET", f"/api/replays/{replay_id}")["moves"] == replay["moves"]
    until(page, "!document.getElementById('waiting').textContent")


def test_right_click_moves_to_a_foundation(visitor):
    """The card moves to a foundation or stays, and the browser's menu doesn't open."""
    page = opened(visitor, "/play?deal=42&draw=one")
    hand = Hand(page)
    choose(page, tap=False)
    page.mouse.click(*hand.centre("t0"), button="right")
    assert said(page) == "jack of hearts does not fit on foundation 1"
    page.mouse.click(*hand.centre("t1"), button="right")
    assert page.inner_text("#points") == "15 points"


@pytest.mark.parametrize(
    ("width", "height", "card"), [(844, 390, 46), (667, 375, 38), (390, 844, 51), (1366, 650, 88), (1920, 940, 130)]
)
def test_board_and_controls_fit_into_the_window(visit, width, height, card):
    """The buttons don't cover the board. A wide window has room for all controls of the page.

    The date and the goal are the longest that a day can have.
    """
    visitor = visit(has_touch=True)
    goal = {"description": "Score 5,000 points or more", "target_score": 5000, "max_time_secs": None}
    day = {"date": "2026-09-30", "seed": 42, **goal}
    visitor.context.route("**/api/daily-challenge", lambda route: route.fulfill(json=day))
    visitor.page.set_viewport_size({"width": width, "height": height})
    page = opened(visitor, "/play?daily")
    controls = "button, summary" if width > 1000 else ".tools button"
    used = page.locator(f".game :is({controls}):not(.board *)").filter(visible=True)
    assert used.count() == (10 if width > 1000 else 4)
    board, *boxes = (each.bounding_box() for each in (page.locator("#board"), *used.all()))
    for box in (board, *boxes):
        assert 0 <= box["x"] <= width - box["width"]
        assert 0 <= box["y"] <= height - box["height"]
    for box in boxes:
        assert box["y"] >= board["y"] + board["height"] or box["x"] >= board["x"] + board["width"]
    assert page.locator("#board li").last.bounding_box()["width"] >= card


GOALS = {  # a goal, what it shows during a game of 200 seconds with 20 points, and what after its win with 430 points
    "time": ({"max_time_secs": 480}, "4:40 left", "goal met"),
    "missed": ({"max_time_secs": 180}, "missed, a win still counts", "missed, still counts as a win"),
    "bonus": ({"target_score": 4000}, "3,980 points to go; a quick win adds a bonus", "missed, still counts as a win"),
    "points": ({"target_score": 500, "date": "2027-01-02"}, "480 points to go", "missed, still counts as a win"),
    "enough": ({"target_score": 300, "date": "2027-01-02"}, "280 points to go", "goal met"),
    "quick": ({"target_score": 3500}, "3,480 points to go; a quick win adds a bonus", "goal met"),
    "reached": ({"target_score": 20, "date": "2027-01-02"}, "reached, now win", "goal met"),
}


@pytest.mark.parametrize("kind", GOALS)
def test_goal_of_the_day_is_beside_the_score(visitor, kind):
    goal, playing, won = GOALS[kind]
    day = {"date": "2026-01-02", "description": "The goal", "target_score": None, "max_time_secs": None, **goal}
    visitor.context.add_init_script("performance.now = () => 0")  # stops the game's clock
    replay, moves = won_game(1)
    for count, words in ((150, playing), (len(moves), won)):
        keep(visitor.page, replay, moves[:count], day=day)
        page = opened(visitor)
        until(page, f"document.getElementById('goal').textContent === 'The goal: {words}'")


@pytest.mark.parametrize("options", [{}, {"forced_colors": "active"}, {"reduced_motion": "reduce"}])
def test_page_to_play_fits_into_320_pixels(visit, options):
    """A width of 320 pixels is also a wide screen at 400 %. A selected card is marked in forced colours too."""
    page = opened(visit(width=320, **options), "/play?deal=42&draw=three")
    choose(page, large=True, tap=False)
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.locator("body > header").bounding_box()["height"] < 110
    page.evaluate("scrollTo(0, 0)")
    Hand(page).select("t1")
    assert page.locator("#board .chosen").count() == 1
    outline = page.evaluate("getComputedStyle(document.querySelector('#board .chosen')).outlineStyle")
    assert outline == "solid" or "forced_colors" not in options
    Hand(page).drag(("t1", "f0", 1))
    moving = page.evaluate("document.getElementById('board').getAnimations({subtree: true}).length")
    assert not moving or "reduced_motion" not in options
