"""Tests of rare events on /play: crashes, taps on moving cards, late wins, and a refusal of each call."""

import contextlib
import json
import re
from functools import partial

import pytest

from solisync.klondike import check_literally
from tests.checking.uploads import game
from tests.clients.engine import UPLOAD
from tests.harness.boards import check
from tests.harness.constants import PATIENCE
from tests.klondike.vectors import wins
from tests.pages.player import JOURNALS, Hand, journals, keep, kept, opened, until_journals, until_stored, won_game
from tests.pages.visitor import Game, answered, until

FINISH = """async () => {
  const { enter } = await web("journal.js");
  const { settle } = await web("outbox.js");
  await enter({ id: crypto.randomUUID(), won: true, score: 100, seconds: 300, draw: 1 }, new Date());
  await settle();
}"""
WAITS = "document.getElementById('waiting').textContent"
RESULT = "document.getElementById('result').textContent"


def test_undos_are_found_without_a_valid_list_of_places(visitor, site):
    """The verdict on a missing, malformed or false `undo_places` equals the verdict on a desktop game's upload."""
    page = visitor.open("/account")
    ann = Game(site)
    (win,) = [win for win in wins("2026-05-19", undo=True) if win["replay"]["mode"] == "Classic"][:1]
    replay, inputs = win["replay"], win["truth"]["inputs"]
    asked = {"seed": str(replay["seed"]), "draw": 3 if replay["draw_mode"] == "DrawThree" else 1, "inputs": inputs}
    ((body, _, _), _) = answered(page, UPLOAD, asked)
    told = check_literally(body.encode())
    upload = json.loads(body)
    verdicts = []
    for number, places in enumerate([None, "x", [10**6], [0]]):
        changed = {**upload, "undo_places": places, "game_id": f"3f2c0e9a-0000-4000-8000-{number:012}"}
        if places is None:
            del changed["undo_places"]
        replay_id = ann.upload(changed)
        verdicts.append(ann.call("GET", f"/api/replays/{replay_id}/verdict"))
    found = {(verdict["status"], verdict["score"], verdict["undos"]) for verdict in verdicts}
    assert found == {("verified", replay["final_score"], told.undos)}


def test_killed_tab_loses_no_move(visit):
    """The tab's process dies during a drag. The next tab shows the game with every move, and the player continues."""
    from playwright.sync_api import Error

    visitor = visit()
    page = opened(visitor, "/play?deal=42&draw=one")
    hand = Hand(page)
    for _ in range(3):  # each click while the previous card is still moving
        hand.stock()
    page.mouse.move(*hand.centre("t1"))
    page.mouse.down()
    page.mouse.move(200, 300)
    page.wait_for_selector(".carried")
    before = kept(page)
    with page.expect_event("crash"), contextlib.suppress(Error):
        page.goto("chrome://crash")
    visitor.page = page = visitor.context.new_page()
    opened(visitor)
    until(page, "!document.getElementById('board').inert")
    after = kept(page)
    assert {**after, "ms": 0} == {**before, "ms": 0}
    assert after["ms"] >= before["ms"]
    Hand(page).stock()
    until(page, "document.getElementById('moves').textContent === '4 moves'")


def test_rotation_during_a_drag_returns_the_cards(visit):
    """The next drag works after the phone has been turned."""
    visitor = visit(width=390)
    page = opened(visitor, "/play?deal=42&draw=one")
    hand = Hand(page)
    page.mouse.move(*hand.centre("t1"))
    page.mouse.down()
    page.mouse.move(*hand.centre("f0"), steps=3)
    page.set_viewport_size({"width": 844, "height": 390})
    until(page, "innerWidth === 844 && !document.querySelector('#board .held, #board .carried')")
    page.mouse.up()
    assert kept(page)["moves"] == ""
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, "innerWidth === 390")
    hand.drag(("t1", "f0", 1))
    assert page.inner_text("#moves") == "1 move"


DAY = {"date": "2026-01-02", "description": "Win within 8 minutes", "target_score": None, "max_time_secs": 480}


def test_late_win_of_the_day_is_explained(visit, site):
    """Offline, the page shows the limit of 36 hours; later, that the win was too late. The day doesn't count."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    Game(site, login=True).seen_as("Ann")
    replay, moves = won_game(0)
    page = opened(ann)
    keep(page, replay, moves[:-1], day=DAY)
    opened(ann, f"/play?daily={DAY['date']}")
    ann.settle()
    ann.context.set_offline(True)
    Hand(page).drag(moves[-1])
    until(page, f"{WAITS}.includes('must arrive within 36 hours of the start of that day')")
    ann.context.set_offline(False)
    until(page, "document.getElementById('result').textContent.includes('too late for the board of the day')", PATIENCE)
    progress = Game(site, login=True).call("GET", "/api/sync/pull")["merged"]
    assert (progress["stats"]["games_won"], progress["progress"]["daily_challenge_history"]) == (1, [])


def test_page_to_play_updates_the_daily_board_by_an_event(visit, site, running):
    ann = visit()
    ann.register()
    page = opened(ann, "/play?daily")
    until(page, "document.getElementById('day-board').textContent.startsWith('No player')")
    day = kept(page)["day"]["date"]
    until(page, f"web('live.js').then(({{ streaming }}) => streaming(['daily/{day}']))", PATIENCE)
    bob = Game(site, "bob")
    check(running.dsn, bob.upload({**game(), "seed": int(kept(page)["deal"]), "moves": []}), 600)
    bob.seen_as("Bob")
    until(page, "document.getElementById('day-board').textContent.startsWith('Won by 1 player')", PATIENCE)


REFUSALS = {
    401: ("unauthorized", "unauthorized", "Your session has ended"),
    403: ("suspended", "your account is suspended", "suspended"),
    429: ("rate_limited", "too many requests", "Too many attempts"),
    500: ("internal", "internal server error", "Something went wrong on the server"),
    503: ("unavailable", "service unavailable", "busy or restarting"),
}


def refusal(status, wait=600):
    code, error, _ = REFUSALS[status]
    return {"status": status, "headers": {"Error-Code": code, "Retry-After": str(wait)}, "json": {"error": error}}


def refuse(answer, asked, route):
    asked.append(route.request.url)
    route.fulfill(**answer)


def test_refused_games_are_reported_and_lose_no_game(visit, site):
    """The game stays in the browser, is sent no earlier than allowed, and counts once."""
    ann = visit()
    ann.register()
    page = ann.page
    for number, (status, (_, _, words)) in enumerate(REFUSALS.items(), 1):
        asked = []
        page = opened(ann)
        ann.settle()
        ann.context.route("**/api/games", partial(refuse, refusal(status), asked))
        page.evaluate(FINISH)
        until(page, f"{WAITS}.includes('1 game waits to be sent')")
        assert words in page.inner_text("#waiting"), status
        assert len(asked) == (3 if status == 401 else 1)  # the later ones have new tokens
        ann.context.unroute("**/api/games")
        page.goto("/replays")
        page = opened(ann)  # a new page retries
        until(page, f"(async () => !{JOURNALS}.of.ann.games.length)()")
        stats = Game(site, login=True).call("GET", "/api/sync/pull")["merged"]["stats"]
        assert (stats["games_played"], stats["games_won"]) == (number, number), status
    assert journals(page, f"{JOURNALS}.known.length") == len(REFUSALS)


@pytest.mark.parametrize("call", ["games", "replays"])
def test_unknown_account_is_noticed_at_each_call(visit, call):
    """The browser keeps the game, and sends no further request after the first refused call."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    asked = []

    def refuse(route):
        asked.append(route.request.url)
        gone = {"Error-Code": "user_not_found"}
        route.fulfill(status=404, headers=gone, json={"error": "user not found"})

    ann.context.route(f"**/api/{call}", refuse)
    keep(ann.page, *won_game(2))
    page = opened(ann)
    until(page, "document.getElementById('me').textContent === 'Sign in'")
    ann.settle()
    assert len(asked) == 1
    unsent = journals(page, f"{JOURNALS}.of.ann")
    assert len(unsent["games"] if call == "games" else unsent["wins"]) == 1


def sharing(visitor, way):
    """Let the page share by the device's dialog, by the clipboard, or by a text to copy by hand."""
    visitor.context.add_init_script(f"""
      window.shared = [];
      const give = async (given) => void window.shared.push(given.url ? `${{given.text}} ${{given.url}}` : given);
      Object.defineProperty(navigator, "share", {{ value: {"give" if way == "shared" else "undefined"} }});
      const writes = {"{ writeText: give }" if way != "shown" else "undefined"};
      Object.defineProperty(navigator, "clipboard", {{ value: writes }});
    """)


def shared_text(page, way):
    """Share the win, and return what is shared."""
    page.locator("#won-next button", has_text="Share").click()
    if way == "shown":
        return until(page, "document.querySelector('#won-next input')?.value")
    (shared,) = until(page, "window.shared.length && window.shared")
    return shared


@pytest.mark.parametrize("way", ["shared", "copied", "shown"])
@pytest.mark.parametrize("signed_in", [True, False])
def test_win_can_be_shared(visit, site, way, signed_in):
    """The page uses the device's dialog, the clipboard, or a text to copy by hand. Signed out, it links the deal."""
    ann = visit(reduced_motion="reduce")
    sharing(ann, way)
    if signed_in:
        ann.register()
    replay, moves = won_game(2)
    keep(ann.page, replay, moves, ms=312_000)
    page = opened(ann)
    link = f"/play?deal={replay['seed']}&draw=one"
    if signed_in:
        page.wait_for_selector("#won-next a", timeout=PATIENCE * 1000)
        link = page.get_attribute("#won-next a", "href")
    told = f"Solitaire · 5:12 · {replay['final_score']} points"
    assert shared_text(page, way) == f"{told} {site}{link}"


@pytest.mark.parametrize("signed_in", [True, False])
def test_share_of_a_day_has_no_solution(visit, site, signed_in):
    """It has the day's address, the goal and the streak. The service counts a streak for the day's deal alone."""
    ann = visit(reduced_motion="reduce")
    sharing(ann, "copied")
    if signed_in:
        ann.register()
    today = Game(site, "bob").call("GET", "/api/daily-challenge")["date"]
    replay, moves = won_game(2)
    day = {"date": today, "description": "The goal", "target_score": None, "max_time_secs": 480}
    keep(ann.page, replay, moves, ms=312_000, day=day)
    page = opened(ann, f"/play?daily={today}")
    until(page, f"{RESULT}.includes('{'Next' if signed_in else '1-day streak · next'} deal in ')")
    if signed_in:
        page.wait_for_selector("#won-next a", timeout=PATIENCE * 1000)
    date = page.evaluate(
        """day => new Date(day).toLocaleDateString("en-GB",
      { day: "numeric", month: "short", timeZone: "UTC" })""",
        today,
    )
    told = f"Solitaire · {date} · 5:12 · {replay['final_score']} points ✓{'' if signed_in else ' · 1-day streak'}"
    assert shared_text(page, "copied") == f"{told} {site}/play?daily={today}"


@pytest.mark.parametrize("status", REFUSALS)
def test_refused_deal_of_the_day_is_reported(visitor, site, status):
    """The page deals another game, and the deal of the day at the next attempt."""
    asked = []
    visitor.context.route("**/api/daily-challenge", partial(refuse, refusal(status, 1), asked))
    page = opened(visitor, "/play?daily")
    assert page.inner_text("#notice").startswith("The deal of the day couldn’t be loaded.")
    assert REFUSALS[status][2] in page.inner_text("#notice")
    assert kept(page)["day"] is None
    assert len(asked) == 1
    visitor.context.unroute("**/api/daily-challenge")
    if status != 401:  # 401 asks the player to sign in
        until(page, "!document.querySelector('#notice button').disabled")
        page.click("#notice button")
        page.wait_for_selector("#goal:not([hidden])")
        assert kept(page)["deal"] == str(Game(site).call("GET", "/api/daily-challenge")["seed"])


@pytest.mark.parametrize("status", [429, 503, 404])
def test_refused_verdict_is_reported(visit, status):
    """The page retries no earlier than allowed, and never if the replay no longer exists."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    asked = []
    gone = {"status": 404, "headers": {"Error-Code": "replay_not_found"}, "json": {"error": "replay not found"}}
    answer = gone if status == 404 else refusal(status, 600 if status == 429 else 1)
    ann.context.route("**/verdict", partial(refuse, answer, asked))
    keep(ann.page, *won_game(2))
    page = opened(ann)
    words = "This replay has been deleted." if status == 404 else "The result isn’t available yet."
    until(page, f"{RESULT}.includes('{words}')", PATIENCE)
    ann.context.unroute("**/verdict")
    if status == 503:
        until(page, f"{RESULT}.includes('✓ Score verified')", PATIENCE)
    else:
        ann.settle()
        assert words in page.inner_text("#result")
    assert len(asked) == 1


@pytest.mark.parametrize("status", REFUSALS)
def test_refused_boards_are_reported(visit, status):
    """The page still shows the win as verified."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    ann.context.route("**/api/boards/**", partial(refuse, refusal(status), []))
    replay, moves = won_game(2)
    keep(ann.page, replay, moves, day=DAY)
    page = opened(ann)
    until(page, f"{RESULT}.includes('✓ Score verified')", PATIENCE)
    until(page, f"{RESULT}.includes('Your place on the board couldn’t be loaded.')")
    until(page, "document.getElementById('day-board').textContent === 'The winners couldn’t be loaded.'")


def test_win_waits_until_its_player_signs_in_again(visit, site):
    """The page names the player while the win waits, and uploads it after that player has signed in."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    replay, moves = won_game(2)
    keep(ann.page, replay, moves[:-1])
    page = opened(ann)
    ann.settle()
    for call in ("replays", "session/refresh"):
        ann.context.route(f"**/api/{call}", partial(refuse, refusal(401), []))
    Hand(page).drag(moves[-1])
    until(page, f"{RESULT}.includes('Saved on this device for ann.')")
    for call in ("replays", "session/refresh"):
        ann.context.unroute(f"**/api/{call}")
    ann.sign_in()
    opened(ann)
    until(page, f"{RESULT}.includes('✓ Score verified')", PATIENCE)
    assert len(Game(site, login=True).call("GET", "/api/me/replays")["replays"]) == 1


@pytest.mark.parametrize("end", ["key", "tap", None])
def test_cards_fall_after_a_win(visit, end):
    """All cards leave the foundations for at most 2.5 seconds, or until a key or a tap, and the panel comes then."""
    visitor = visit()
    replay, moves = won_game(2)
    keep(visitor.page, replay, moves[:-1])
    page = opened(visitor)
    visitor.settle()
    page.evaluate("""() => new MutationObserver(() => {
      const falling = document.querySelector(".falling");
      if (falling) setTimeout(() => { window.cards = document.getAnimations().filter(({ effect }) =>
        effect.target.matches(".falling li")).map(({ effect }) => effect.getComputedTiming().endTime); });
    }).observe(document.getElementById("board"), { attributes: true })""")
    Hand(page).drag(moves[-1])
    ends = until(page, "window.cards")
    assert len([end for end in ends if end > 1000]) == 52  # another one is the flight of the last card
    assert max(ends) <= 2500
    if end == "key":
        page.keyboard.press("Shift")
    elif end == "tap":
        page.mouse.click(*Hand(page).centre("t6"))
    if end:
        assert not page.evaluate("document.querySelector('.falling')")
    until(page, "!document.querySelector('.falling') && getComputedStyle(won).opacity === '1'")
    assert end == "tap" or page.evaluate("document.activeElement.id") == "won-heading"
    assert page.locator("#board .foundation li:last-child").filter(visible=True).count() == 4


def test_colours_rain_after_the_cards(visit):
    """Bits of paper fall in front of the panel, don't catch taps, and are gone after two seconds."""
    visitor = visit()
    replay, moves = won_game(2)
    keep(visitor.page, replay, moves[:-1])
    page = opened(visitor)
    visitor.settle()
    Hand(page).drag(moves[-1])
    page.wait_for_selector(".falling", state="attached")
    page.keyboard.press("Shift")
    assert page.locator(".rain i").count() == 60
    ends = page.evaluate("""() => document.getAnimations().filter(({ effect }) => effect.target.matches(".rain i"))
      .map(({ effect }) => effect.getComputedTiming().endTime)""")
    assert max(ends) <= 2_000
    page.click("#won-next button.main")
    until(page, "!document.querySelector('.rain')")


@pytest.mark.parametrize("better", [True, False])
def test_best_score_is_named(visitor, better):
    """A player's first win isn't a record."""
    replay, moves = won_game(0)
    other, last = won_game(2)
    order = [(replay, moves), (other, last)]
    order.sort(key=lambda each: each[0]["final_score"], reverse=not better)
    assert order[0][0]["final_score"] != order[1][0]["final_score"]
    for number, (won, made) in enumerate(order):
        keep(visitor.page, won, made, number=number)
        page = opened(visitor)
        page.wait_for_selector("#result dl")
        assert ("★ Your best score" in page.inner_text("#result")) == (number > 0 and better)
        until_stored(page, number + 1)


def test_cards_stay_after_a_win_with_reduced_motion(visit):
    visitor = visit(reduced_motion="reduce")
    replay, moves = won_game(2)
    keep(visitor.page, replay, moves[:-1])
    page = opened(visitor)
    visitor.settle()
    Hand(page).drag(moves[-1])
    page.wait_for_selector("#won-next button")
    assert page.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize(("width", "height"), [(1366, 650), (390, 844), (844, 390)])
def test_panel_of_a_win_is_over_the_board(visit, width, height):
    """The board keeps its size. The panel has the time, the statistics, and one main button in the page."""
    visitor = visit(reduced_motion="reduce")
    visitor.page.set_viewport_size({"width": width, "height": height})
    replay, moves = won_game(2)
    keep(visitor.page, replay, moves[:-1], ms=312_000)
    page = opened(visitor)
    visitor.settle()
    before = page.locator("#board").bounding_box()
    Hand(page).drag(moves[-1])
    page.wait_for_selector("#won-next button")
    board, panel = page.locator("#board").bounding_box(), page.locator("#won").bounding_box()
    assert board == before
    assert 0 <= panel["x"] - board["x"] <= board["width"] - panel["width"]
    assert 0 <= panel["y"] - board["y"] <= board["height"] - panel["height"]
    assert page.evaluate("won.scrollHeight <= won.clientHeight")
    assert panel["width"] == 448 or width < 960
    facts = [replay["final_score"], replay["final_score"], 1, "1 of 1"]
    labels = ["Points", "Best", "Win streak", "Won"]
    assert page.locator("#won dt").all_text_contents() == labels
    assert page.locator("#won dd").all_text_contents() == list(map(str, facts))
    assert page.locator("main .main").filter(visible=True).all_text_contents() == ["New game"]
    again = page.locator("main button", has_text=re.compile("game|again|Restart")).filter(visible=True)
    assert again.all_text_contents() == ["New game", "Play again"]


def test_link_to_another_deal_keeps_a_win(visitor):
    """The win is counted even if the player leaves the page first, and the other deal is ready to play."""
    keep(visitor.page, *won_game(2))
    page = opened(visitor, "/play?deal=42&draw=one")
    until_journals(page, f"{JOURNALS}.of['']?.wins.length === 1")
    visitor.settle()
    assert kept(page)["deal"] == "42"
    assert page.is_hidden("#won")
