"""Tests of the journal: each finished game counts once and each win is uploaded once, even if requests get lost."""

import itertools
import json
import time

import pytest

from tests.harness.constants import PASSWORD, PATIENCE
from tests.harness.postgres import run_sql
from tests.pages.player import (
    JOURNALS,
    KEEP_JOURNALS,
    Hand,
    journals,
    keep,
    kept,
    opened,
    until_journals,
    until_stored,
    won_game,
)
from tests.pages.visitor import Game, until

NIL = "00000000-0000-0000-0000-000000000000"
ENTER = """async ([seconds, won]) => {
  const { Game } = await web("game.js");
  const { enter } = await web("journal.js");
  const { settle } = await web("outbox.js");
  const { id } = new Game("1", 1);
  await enter({ id, won, score: won ? 100 : 0, seconds, draw: 1 }, new Date());
  settle();
}"""
# some game was entered, and none waits to be sent
SETTLED = f"""(async () => {{
  const {{ known, of }} = {JOURNALS};
  return known.length > 0 && !Object.values(of).some(one => one.games.length || one.wins.length);
}})()"""


def progress(site, name="ann"):
    return Game(site, name, login=True).call("GET", "/api/sync/pull")["merged"]


def counted(site):
    stats = progress(site)["stats"]
    return stats["games_played"], stats["games_won"]


def losing(context, pattern, *, after):
    """Lose the first answer of each kind: before the request arrives, or after it was committed."""
    lost = []

    def lose(route):
        if not lost:
            lost.append(route.request.post_data)
            if after:
                route.fetch()
            return route.abort()
        lost.append(route.request.post_data)
        return route.continue_()

    context.route(pattern, lose)
    return lost


def finished(ann, replay, moves, *, undos=()):
    """Open a game one move before its win, and win it."""
    page = ann.page
    keep(page, replay, moves[:-1], undos=undos)
    opened(ann)
    Hand(page).drag(moves[-1])
    page.wait_for_selector("#won:not([hidden])")
    return page


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("pattern", ["**/api/games", "**/api/replays"])
def test_lost_answer_loses_and_repeats_no_game(visit, site, pattern, after):
    """The answer gets lost before or after the commit. The repeated request adds nothing."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    replay, moves = won_game(2)
    lost = losing(ann.context, pattern, after=after)
    page = finished(ann, replay, moves)
    until(page, SETTLED)
    assert len(lost) >= 2
    assert len(set(lost)) == 1
    assert counted(site) == (1, 1)
    replays = Game(site, login=True).call("GET", "/api/me/replays")["replays"]
    assert len(replays) == 1
    assert progress(site)["stats"]["lifetime_score"] == replay["final_score"]


def test_win_is_stored_before_its_panel_is_loaded(visit):
    """The panel may load slowly, and the player may leave."""
    ann = visit(reduced_motion="reduce")
    replay, moves = won_game(2)
    keep(ann.page, replay, moves[:-1])
    ann.context.route("**/win.js", lambda route: None)  # no answer
    page = opened(ann)
    Hand(page).drag(moves[-1])
    until_stored(page, 1)
    assert page.is_hidden("#won")


def test_next_page_sends_a_game_without_an_answer_again(visit, site):
    """The game counts once, and one that is finished later too."""
    ann = visit()
    ann.register()
    page = opened(ann)
    ann.settle()
    bodies = []

    def hold(route):
        bodies.append(json.loads(route.request.post_data)["games"])
        if len(bodies) == 1:
            route.fetch()  # the request arrives, but its answer gets lost
        else:
            route.continue_()

    ann.context.route("**/api/games", hold)
    page.evaluate(ENTER, [100, True])
    until_journals(page, f"{JOURNALS}.of.ann?.games.length")
    while not bodies:
        page.wait_for_timeout(20)
    page.goto("/replays")
    page.goto("/play")
    until(page, SETTLED)
    page.evaluate(ENTER, [90, True])
    until_journals(page, f"{JOURNALS}.of.ann.games.length === 0 && {JOURNALS}.known.length === 2")
    assert bodies[0] == bodies[1] != bodies[2]
    assert counted(site) == (2, 2)


def test_journal_of_version_1_1_is_taken_over(visit, site):
    """A push without an answer is repeated with its bytes. The other games go by their ids, in no push."""
    ann = visit()
    ann.register()
    page = opened(ann)
    ann.settle()
    page.goto("/replays")
    base = progress(site)
    body = {**base, "user_id": NIL, "stats": {**base["stats"], "games_played": 1, "games_won": 1}}
    sent = {"body": json.dumps(body), "games": 1}
    game = {"won": True, "score": 5, "seconds": 9, "draw": 1, "undone": False, "day": None}
    ids = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(3)]
    games = [{"id": number, "at": "2026-11-20T12:00:00.000+01:00", **game} for number in ids]
    journal = {"base": base, "answers": 1, "games": games[:2], "sent": sent, "wins": []}
    guest = {"base": None, "answers": 0, "games": games[2:], "sent": None, "wins": []}
    page.evaluate(KEEP_JOURNALS, {"known": ids, "uploaded": {}, "of": {"ann": journal, "": guest}})
    requests = []
    ann.context.on("request", lambda request: request.method == "POST" and requests.append(request))
    opened(ann)
    until_journals(page, f"{JOURNALS}.of.ann.games.length === 0 && {JOURNALS}.known.length === 3")
    pushed = [request.post_data for request in requests if request.url.endswith("/push")]
    by_id = [json.loads(request.post_data)["games"] for request in requests if request.url.endswith("/games")]
    assert pushed == [sent["body"]]
    assert [[each["game_id"] for each in batch] for batch in by_id] == [[ids[1]]]
    assert counted(site) == (2, 2)
    assert journals(page, f"{JOURNALS}.of[''].games.length") == 1  # it is offered, as before
    opened(ann)
    ann.settle()
    assert counted(site) == (2, 2)


def test_open_page_keeps_pages_of_version_1_1_from_sending(visit):
    """The page holds the lock under which those send."""
    ann = visit()
    ann.register()
    page = opened(ann)
    ann.settle()
    held = "navigator.locks.query().then(({ held }) => held.some(({ name }) => name === 'solisync.outbox'))"
    until(page, held)


def test_two_tabs_and_another_device_count_every_game_once(visit, site):
    """The tabs finish games while another device pushes."""
    ann = visit()
    ann.register()
    device = Game(site, login=True)
    base = device.call("GET", "/api/sync/pull")["merged"]
    tabs = [opened(ann)]
    ann.page = ann.context.new_page()
    tabs.append(opened(ann))
    for number, tab in enumerate(itertools.islice(itertools.cycle(tabs), 6)):
        tab.evaluate(ENTER, [200 + number, number % 2 == 0])
        base["stats"]["games_played"] += 1
        base["stats"]["games_won"] += 1
        base = device.call("POST", "/api/sync/push", base)["merged"]
    for tab in tabs:
        until(tab, SETTLED)
    assert counted(site) == (12, 9)


def test_win_without_an_account_can_be_kept_after_registering(visit, site):
    """The player has asked to keep it, so the win is uploaded after registering. All games before it count once too."""
    guest = visit(reduced_motion="reduce")
    replay, moves = won_game(2)
    page = opened(guest, "/play?deal=42&draw=one")
    Hand(page).stock()
    page.click("#new")
    page.click("#leave button[value=leave]")
    until_journals(page, f"{JOURNALS}.of['']?.games.length === 1")
    page = finished(guest, replay, moves)
    until(
        page, "document.getElementById('result').textContent.includes('Saved on this device only, with 1 other game')"
    )
    page.click("#result a")
    page.fill("#new-name", "ann")
    page.fill("#new-password", PASSWORD)
    page.click("#new-form button.main")
    page.click("#codes-next")
    page.wait_for_url(lambda url: url.startswith(f"{site}/play"))
    until_journals(page, f"Object.keys({JOURNALS}.uploaded).length")
    until(page, SETTLED)
    assert counted(site) == (2, 1)
    assert "keep" not in page.url
    assert len(Game(site, login=True).call("GET", "/api/me/replays")["replays"]) == 1
    opened(guest)
    guest.settle()
    assert counted(site) == (2, 1)


@pytest.mark.parametrize("query", ["", "?keep=3f2c0e9a-0000-4000-8000-000000000000"])
def test_games_of_another_sign_in_are_offered(visit, site, query):
    """The player has not asked to keep a win before signing in, or the link names a win that isn't in this browser."""
    guest = visit()
    page = opened(guest)
    page.evaluate(ENTER, [100, True])
    until_journals(page, f"{JOURNALS}.of[''].games.length === 1")
    guest.register()
    opened(guest, f"/play{query}")
    until(page, "document.getElementById('offer').textContent.includes('1 other game played here while signed out')")
    assert counted(site) == (0, 0)
    page.locator("#offer button", has_text="Add").click()
    until(page, SETTLED)
    assert counted(site) == (1, 1)


def test_games_answered_with_not_mine_are_deleted(visit, site):
    guest = visit()
    page = opened(guest)
    page.evaluate(ENTER, [100, True])
    until_journals(page, f"{JOURNALS}.of[''].games.length === 1")
    guest.register()
    opened(guest)
    until(page, "document.querySelectorAll('#offer button').length === 2")
    page.locator("#offer button", has_text="Not mine").click()
    until(page, SETTLED)
    assert counted(site) == (0, 0)


def test_games_of_one_player_never_count_for_another(visit, site):
    """Signing out asks while a game waits. The game still belongs to its player after another player has signed in."""
    Game(site, "bob")
    ann = visit()
    ann.register()
    page = opened(ann)
    ann.settle()
    ann.context.route("**/api/games", lambda route: route.fulfill(status=503, headers={"Retry-After": "600"}))
    page.evaluate(ENTER, [100, True])
    until_journals(page, f"{JOURNALS}.of.ann?.games.length")
    ann.open("/account")
    page.click("#sign-out")
    assert page.text_content("#unsent-heading") == "1 game couldn’t be sent yet"
    page.click("#unsent button.main")
    page.wait_for_selector("#unsent", state="detached")
    assert page.evaluate("localStorage.solisync") == "ann"
    page.click("#sign-out")
    page.click("#unsent button[value=leave]")
    page.wait_for_selector("#out:not([hidden])")
    until_journals(page, f"{JOURNALS}.of.ann.base === null")
    ann.context.unroute("**/api/games")
    ann.sign_in("bob")
    opened(ann)
    ann.settle()
    assert journals(page, f"{JOURNALS}.of.ann.games.length") == 1
    assert progress(site, "bob")["stats"]["games_played"] == 0
    page.goto("/account")
    page.click("#sign-out")
    page.wait_for_selector("#out:not([hidden])")
    ann.sign_in("ann")
    opened(ann)
    until(page, SETTLED)
    assert counted(site) == (1, 1)


def test_renamed_player_keeps_unsent_games(visit, site, running):
    """An operator renames the player while a game has no answer. The journal and the saved game follow the player."""
    ann = visit()
    ann.register()
    page = opened(ann, "/play?deal=42&draw=one")
    ann.settle()
    losing(ann.context, "**/api/games", after=True)
    page.evaluate(ENTER, [100, True])
    until_journals(page, f"{JOURNALS}.of.ann?.games.length")
    run_sql(running.dsn, "UPDATE users SET username = 'anna' WHERE username = 'ann'")
    ann.open("/account")
    until(page, "localStorage.solisync === 'anna'")
    opened(ann)
    until(page, SETTLED)
    assert kept(page)["deal"] == "42"
    stats = progress(site, "anna")["stats"]
    assert (stats["games_played"], stats["games_won"]) == (1, 1)


def test_next_player_of_a_name_gets_nothing_of_the_former(visit, site):
    """Another account gets the name of a deleted one. In the same browser, its player has a new game and no journal."""
    ann = visit()
    ann.register()
    page = opened(ann, "/play?deal=42&draw=one")
    Hand(page).stock()
    ann.context.route("**/api/games", lambda route: route.abort())
    page.evaluate(ENTER, [100, True])
    until_journals(page, f"{JOURNALS}.of.ann.games.length")
    assert kept(page)["deal"] == "42"
    Game(site, login=True).call("DELETE", "/api/account")
    ann.open("/account")
    page.wait_for_selector("#out:not([hidden])")
    ann.context.unroute("**/api/games")
    ann.register()
    opened(ann)
    ann.settle()
    assert page.inner_text("#moves") == "0 moves"
    assert journals(page, f"{JOURNALS}.of.ann?.games.length ?? 0") == 0
    assert progress(site, "ann")["stats"]["games_played"] == 0


REFUSALS = {
    400: ("replay_storage_full", "replay storage is full", "Delete some of your games"),
    403: ("suspended", "your account is suspended", "suspended"),
    429: ("rate_limited", "too many requests", ""),
    500: ("internal", "internal server error", ""),
    503: ("unavailable", "service unavailable", ""),
}


@pytest.mark.parametrize("status", REFUSALS)
def test_refused_upload_is_reported_and_loses_no_game(visit, site, status):
    """The page sends no request before its time, and the button tries again."""
    code, error, words = REFUSALS[status]
    ann = visit(reduced_motion="reduce")
    ann.register()
    replay, moves = won_game(2)
    asked = []

    def refuse(route):
        asked.append(time.monotonic())
        route.fulfill(status=status, headers={"Error-Code": code, "Retry-After": "1"}, json={"error": error})

    ann.context.route("**/api/replays", refuse)
    page = finished(ann, replay, moves)
    until(page, "document.getElementById('outbox').textContent.includes('1 win waits to be sent')")
    assert words in page.inner_text("#outbox")
    assert all(later - earlier >= 1 for earlier, later in itertools.pairwise(asked)), asked
    assert len(asked) == 1 or status not in (400, 403)
    ann.context.unroute("**/api/replays")
    if status in (400, 403):  # the page retries all others by itself
        until(page, "!document.querySelector('#outbox button').disabled")
        page.click("#outbox button")
    until(page, SETTLED)
    assert counted(site) == (1, 1)


def test_game_that_ends_during_a_refused_request_waits_too(visit, site):
    """Its own request comes no earlier than the service has asked for, though it was called for before the refusal."""
    ann = visit()
    ann.register()
    page = opened(ann)
    ann.settle()
    asked = []

    def refuse(route):
        asked.append(time.monotonic())
        route.fulfill(status=503, headers={"Error-Code": "unavailable", "Retry-After": "1"}, json={"error": "busy"})

    ann.context.route("**/api/games", refuse)
    for seconds in (100, 90):
        page.evaluate(ENTER, [seconds, True])
    deadline = time.monotonic() + PATIENCE
    while len(asked) < 4:  # one call sends three
        assert time.monotonic() < deadline, asked
        page.wait_for_timeout(20)
    assert all(later - earlier >= 1 for earlier, later in itertools.pairwise(asked)), asked
    ann.context.unroute("**/api/games")
    until(page, SETTLED)
    assert counted(site) == (2, 2)


def test_signing_out_pushes_first_and_hides_the_game(visit, site):
    """The next player in this browser gets another deal. The first one finds the game after signing in again."""
    ann = visit()
    ann.register()
    page = opened(ann, "/play?deal=42&draw=one")
    Hand(page).stock()
    ann.settle()
    ann.context.set_offline(True)
    page.evaluate(ENTER, [100, True])
    until_journals(page, f"{JOURNALS}.of.ann?.games.length === 1")
    ann.context.set_offline(False)
    playing, ann.page = page, ann.context.new_page()
    ann.open("/account")
    ann.page.click("#sign-out")
    ann.page.wait_for_selector("#out:not([hidden])")
    until_journals(ann.page, f"!{JOURNALS}.of.ann.base")
    assert counted(site) == (1, 1)
    playing.wait_for_url(lambda url: "deal=" in url and "deal=42" not in url)
    until(playing, "document.getElementById('moves').textContent === '0 moves'")
    assert kept(playing)["moves"] == ""
    ann.sign_in()
    ann.page.close()
    ann.page = playing
    opened(ann)
    assert playing.inner_text("#moves") == "1 move"
    assert kept(playing)["deal"] == "42"


@pytest.mark.parametrize("name", ["__proto__", "constructor"])
def test_player_named_like_an_object_property_loses_no_game(visit, site, name):
    """Such names already have a value in an empty JavaScript object, so the journal must not use them as plain keys."""
    player = visit()
    player.register(name)
    page = opened(player)
    page.evaluate(ENTER, [100, True])
    until_stored(page, 1)
    until(page, SETTLED)
    stats = progress(site, name)["stats"]
    assert (stats["games_played"], stats["games_won"]) == (1, 1)


def test_account_that_the_service_does_not_know_keeps_its_journal(visit, site):
    """The browser is signed out. The game counts when the account is there again."""
    ann = visit()
    ann.register()
    page = opened(ann)
    ann.settle()
    gone = {"status": 404, "headers": {"Error-Code": "user_not_found"}, "json": {"error": "user not found"}}
    ann.context.route("**/api/games", lambda route: route.fulfill(**gone))
    page.evaluate(ENTER, [100, True])
    until(page, "document.getElementById('me').textContent === 'Sign in'")
    assert journals(page, f"{JOURNALS}.of.ann.games.length") == 1
    ann.context.unroute("**/api/games")
    ann.sign_in()
    page = opened(ann)
    until(page, SETTLED)
    assert counted(site) == (1, 1)


def test_forged_win_is_refuted(visit, site):
    """The page shows a tick only for a win that the service has verified."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    replay, moves = won_game(2)

    def forge(route):
        body = json.loads(route.request.post_data)
        route.continue_(post_data=json.dumps({**body, "final_score": body["final_score"] + 5}))

    ann.context.route("**/api/replays", forge)
    page = finished(ann, replay, moves)
    until(page, "document.getElementById('result').textContent.includes('could not confirm')", PATIENCE)
    assert "✓" not in page.inner_text("#won")


def test_games_keep_unknown_fields_of_newer_clients(visit, site):
    """The service keeps unknown fields in all parts of the payload, and the achievements."""
    ann = visit()
    ann.register()
    device = Game(site, login=True)
    payload = device.call("GET", "/api/sync/pull")["merged"]
    payload["user_id"] = NIL
    payload["newer"] = 1
    payload["stats"]["newer"] = 12345678901234567890
    payload["progress"]["newer"] = [1.50]
    payload["achievements"] = [
        {
            "id": "first_win",
            "unlocked": True,
            "unlock_date": "2026-01-02T10:00:00Z",
            "reward_granted": True,
            "newer": {},
        }
    ]
    device.call("POST", "/api/sync/push", payload)
    page = opened(ann)
    page.evaluate(ENTER, [100, True])
    until(page, SETTLED)
    merged = progress(site)
    assert (merged["user_id"], merged["newer"], merged["progress"]["newer"]) == (NIL, 1, [1.50])
    assert merged["stats"]["newer"] == 12345678901234567890
    assert merged["achievements"] == payload["achievements"]
    assert merged["stats"]["games_won"] == 1
    assert merged["stats"]["fastest_win_seconds"] == 100


def test_games_count_once_without_locks(visit, site):
    """Browsers have no navigator.locks over plain HTTP, so the tabs use a lease."""
    ann = visit()
    ann.context.add_init_script("Object.defineProperty(navigator, 'locks', {value: undefined})")
    ann.register()
    page = opened(ann)
    ann.page = ann.context.new_page()
    other = opened(ann)
    for tab in (page, other, page):
        tab.evaluate(ENTER, [100, True])
    for tab in (page, other):
        until(tab, SETTLED, PATIENCE)
    assert counted(site) == (3, 3)


def test_edited_storage_keeps_the_progress_of_the_service(visit, site):
    """A malformed journal or a full storage changes nothing on the service, and the player can keep playing."""
    ann = visit()
    ann.register()
    page = opened(ann)
    ann.settle()
    page.goto("/replays")
    broken = {"base": {"stats": "x"}, "games": 7, "sent": None, "wins": []}
    page.evaluate(
        KEEP_JOURNALS.replace('journals"', 'journals-2"'),
        {"version": 2, "players": {"ann": {"latest": 7, "games": [7, {"game": {}}]}, "bob": {"games": "x"}, "": None}},
    )
    page.evaluate(
        KEEP_JOURNALS,
        {"known": 7, "uploaded": [], "of": {"ann": broken, "bob": {**broken, "base": None, "games": [], "sent": {}}}},
    )
    opened(ann)
    page.evaluate(ENTER, [100, True])
    until(page, SETTLED)
    assert counted(site) == (1, 1)
    page.evaluate("""() => {
      let size = 2 ** 22;
      for (let count = 0; size; ) {
        try { localStorage.setItem(`full.${count++}`, "x".repeat(size)); } catch { size >>= 1; }
      }
    }""")
    Hand(page).stock()
    assert page.inner_text("#moves") == "1 move"
    page.evaluate(ENTER, [100, True])
    until(page, SETTLED)
    assert counted(site) == (2, 2)


def test_two_tabs_lose_no_game_when_both_finish_games(visit):
    """The journal has all 60 games, although each tab reads entries that the other tab has just stored."""
    visitor = visit()
    first = opened(visitor)
    visitor.page = second = visitor.context.new_page()
    opened(visitor)
    for tab in (first, second):
        tab.evaluate(
            """() => {
              window.all = (async () => {
                const { enter } = await web("journal.js");
                for (let count = 0; count < 30; count++) {
                  const id = crypto.randomUUID();
                  await enter({ id, won: true, score: 1, seconds: 9, draw: 1 }, new Date());
                }
              })();
              return 0;
            }"""
        )
    for tab in (first, second):
        tab.evaluate("() => window.all")
    for tab in (first, second):
        assert journals(tab, f"{JOURNALS}.of[''].games.length") == journals(tab, f"{JOURNALS}.known.length") == 60


def test_games_count_in_a_browser_without_databases(visit, site):
    """The games count as long as the page stays open."""
    ann = visit()
    ann.register()
    ann.context.add_init_script("Object.defineProperty(window, 'indexedDB', { value: undefined });")
    page = opened(ann)
    for seconds in (100, 90):
        page.evaluate(ENTER, [seconds, True])
        until(page, SETTLED)
    assert counted(site) == (2, 2)


REFUSE_WRITES = """() => {
  const { put } = IDBObjectStore.prototype;
  window.allow = () => { IDBObjectStore.prototype.put = put; };
  IDBObjectStore.prototype.put = function () { throw new DOMException("no room", "QuotaExceededError"); };
}"""
UNSAVED = "document.getElementById('waiting').textContent.includes('can’t save finished games now')"


def test_game_that_the_browser_does_not_store_is_not_sent(visit, site):
    """The page says so, keeps the game, and stores and sends it when the browser has room again."""
    ann = visit()
    ann.register()
    page = opened(ann)
    page.evaluate(ENTER, [100, True])
    until(page, SETTLED)
    pushes = []
    ann.context.on("request", lambda request: "/api/games" in request.url and pushes.append(request))
    page.evaluate(REFUSE_WRITES)
    page.evaluate(ENTER, [90, True])
    until(page, UNSAVED)
    assert journals(page, f"{JOURNALS}.of.ann.games.length") == 1
    assert pushes == []
    page.evaluate("allow()")
    until(page, f"!{UNSAVED}", 2 * PATIENCE)
    until(page, SETTLED)
    assert counted(site) == (2, 2)
