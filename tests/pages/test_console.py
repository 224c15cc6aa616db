"""Tests of the console's pages in a browser (docs/console.md "Pages")."""

import re

import msgspec
import pytest
from msgspec.json import encode

from solisync.klondike import in_words, prove
from solisync.rules.administration import CODE_DIGITS
from solisync.rules.recovery import digest, new_code, read_code
from tests.checking.uploads import encoded, game
from tests.harness.payloads import progress_of
from tests.harness.postgres import run_sql
from tests.pages.admin import PLAYER, choose, paths, sign_in
from tests.pages.test_axe import Judge
from tests.pages.visitor import Game


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_axe_finds_nothing_in_the_console(console, running, width, scheme):
    """The check covers every page, the sign-in and the dialog of an act. Nothing is wider than the screen."""
    judge, visitor = Judge(), console(width=width, scheme=scheme)
    visitor.page.goto("/")
    visitor.page.wait_for_selector("#sign-in")
    judge.look(visitor, "sign in")
    sign_in(visitor, running.dsn)
    for path in paths(running.dsn):
        visitor.open(path)
        judge.look(visitor, path)
    page = visitor.open(f"/players/{PLAYER}")
    page.click("button:has-text('Suspend …')")
    judge.look(visitor, "the dialog of an act")
    assert judge.found == []


def test_progress_is_restored_from_an_export(console, running, place):
    """Every number arrives as it is spelled. What isn't this player's export is refused in the dialog."""
    page = sign_in(console(), running.dsn, f"/players/{PLAYER}")
    progress = progress_of(progress__total_xp=2**64 - 1, stats__average_time_secs=0.1, unknown=[12345678901234567890])
    exports = {
        "This file is not an export.": b"{",
        "This file is not an export of this account.": encode({"account": {"id": "x"}, "progress": progress}),
        "This export has no progress": encode({"account": {"id": PLAYER}, "progress": None}),
        "": encode({"account": {"id": PLAYER}, "progress": progress}),
    }
    page.click("button:has-text('Restore progress …')")
    page.select_option("#act-reason", "request")
    for error, content in exports.items():
        file = {"name": "ann.json", "mimeType": "application/json", "buffer": content}
        page.set_input_files("#act [name=progress]", [file])
        page.click("#act button:not([type])")
        page.wait_for_selector(
            f"#act [role=alert]:has-text('{error}')" if error else "#act", state="attached" if error else "detached"
        )
    ((stored,),) = run_sql(running.dsn, "SELECT payload FROM sync_states")
    assert '"total_xp":18446744073709551615' in stored
    assert "12345678901234567890" in stored
    assert run_sql(running.dsn, "SELECT act, reason FROM admin_acts") == [("restore", "request")]


def test_text_of_players_is_never_markup(console, running):
    """Markup runs no script, and marks of text direction affect only their own cell."""
    visitor = console()
    sign_in(visitor, running.dsn)
    for path in paths(running.dsn):
        page = visitor.open(path)
        assert page.title().endswith("solisync console")
        assert page.locator("#main img:not([alt])").count() == 0
        for text in page.locator("bdi", has_text="onerror").all():
            assert text.inner_text().startswith("<img src=x")


def test_frequent_jobs_work_in_the_browser(console, running):
    """The record lists each act: find, suspend, unsuspend, rename, remove the avatar, restore and delete."""
    visitor = console()
    page = sign_in(visitor, running.dsn)
    visitor.open("/players")
    page.fill("#q", "ann")
    page.press("#q", "Enter")
    page.wait_for_url(re.compile(PLAYER))
    visitor.settle()
    choose(page, "Suspend …")
    page.wait_for_selector("text=until lifted")
    choose(page, "End suspension …")
    page.wait_for_selector("button:has-text('Suspend …')")
    choose(page, "Rename entry …", "name", display_name="A player")
    choose(page, "Remove avatar …", "avatar")
    page.wait_for_selector("button:has-text('Remove avatar')", state="detached")
    choose(page, "Restore access …", "takeover")
    assert page.input_value("#link").startswith("/reset#")
    page.keyboard.press("Escape")
    choose(page, "Delete …", "request", username="ann")
    page.wait_for_url("**/players")
    acts = [act for (act,) in run_sql(running.dsn, "SELECT act FROM admin_acts ORDER BY id")]
    assert acts == ["suspend", "unsuspend", "name", "remove_avatar", "link", "delete"]


CLICKS = """
    addEventListener("click", (event) => event.detail && (window.clicks = (window.clicks ?? 0) + 1), true)
"""


def clicks(page, done):
    """Return the number of pointer clicks that an action takes on this page."""
    page.evaluate("window.clicks = 0")
    done()
    return page.evaluate("window.clicks")


def test_frequent_jobs_take_at_most_three_clicks(console, running, site):
    """An act on the page of a player takes three clicks. One is for a choice in a menu, made here by the keyboard.

    Its undo takes one. Finding a player and seeing the evidence in a list take none.
    """
    refute(site, running.dsn, final_score=1110)
    visitor = console()
    visitor.page.add_init_script(CLICKS)
    page = sign_in(visitor, running.dsn, f"/players/{PLAYER}")
    assert clicks(page, lambda: choose(page, "Suspend …", "spam")) == 2
    page.wait_for_selector("button:has-text('End suspension …')")
    assert clicks(page, lambda: page.click("#undo button")) == 1
    page.wait_for_selector("button:has-text('Suspend …')")
    assert clicks(page, lambda: choose(page, "Remove avatar …", "avatar")) == 2
    page.wait_for_selector("button:has-text('Remove avatar')", state="detached")
    assert clicks(page, lambda: choose(page, "Restore access …", "takeover")) == 2
    page.keyboard.press("Escape")
    (export,) = page.locator("a[download]").all()
    with page.expect_download():
        assert clicks(page, export.click) == 1
    page = visitor.open("/")
    page.wait_for_selector("#findings")
    assert "Findings" in page.inner_text("#findings")
    page.keyboard.press("Control+k")
    page.keyboard.type("ann")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(PLAYER))
    assert page.evaluate("window.clicks ?? 0") == 0
    page = visitor.open("/replays")
    assert "claims 1,110; its moves prove" in page.inner_text("tbody")
    assert page.evaluate("window.clicks ?? 0") == 0


def test_lists_can_be_paged(console, running):
    """The keyboard moves to older entries and back. A reload, or a return to the list, keeps the position."""
    run_sql(
        running.dsn,
        "INSERT INTO admin_acts (actor_kind, actor, act, target) SELECT 'shell', 'bob', 'lock', 'player'"
        " FROM generate_series(1, 120)",
    )
    page = sign_in(console(), running.dsn, "/acts")
    rows = page.locator("tbody tr")
    assert rows.count() == 50
    page.click("text=Older")
    page.wait_for_selector("text=Page 2")
    assert page.evaluate("document.activeElement.textContent") == "Newer"
    page.get_by_role("button", name="Older").press("Enter")
    page.wait_for_selector("text=Page 3")
    assert rows.count() == 20
    assert page.get_by_role("button", name="Older").count() == 0
    page.reload()
    page.wait_for_selector("text=Page 3")
    page.goto("/service")
    page.go_back()
    page.wait_for_selector("text=Page 3")
    page.click("text=Newer")
    page.wait_for_selector("text=Page 2")


def test_undo_button_reverses_an_act(console, running):
    """One click reverses the act for its reason, and the record has both. An irreversible act has no such button."""
    page = sign_in(console(), running.dsn, f"/players/{PLAYER}")
    choose(page, "Suspend …", "spam", message="stop")
    page.click("#undo button")
    page.wait_for_selector("#undo", state="detached")
    page.wait_for_selector("button:has-text('Suspend …')")
    run_sql(running.dsn, "UPDATE leaderboard SET display_name = 'Queen'")
    page.reload()
    choose(page, "Rename entry …", "name", display_name="A player")
    page.wait_for_selector("text=A player")
    assert page.evaluate("document.activeElement.textContent") == "Undo"
    page.keyboard.press("Enter")
    page.wait_for_selector("#undo", state="detached")
    choose(page, "Remove avatar …", "avatar")
    page.wait_for_selector("button:has-text('Remove avatar')", state="detached")
    assert page.locator("#undo").count() == 0
    rows = run_sql(running.dsn, "SELECT act, reason FROM admin_acts ORDER BY id")
    assert rows == [
        ("suspend", "spam"),
        ("unsuspend", "spam"),
        ("name", "name"),
        ("name", "name"),
        ("remove_avatar", "avatar"),
    ]
    assert run_sql(running.dsn, "SELECT display_name FROM leaderboard") == [("Queen",)]


def test_search_opens_a_player_from_any_page(console, running):
    """Ctrl+K, an exact name and Enter open the page of that player."""
    page = sign_in(console(), running.dsn, "/service")
    page.keyboard.press("Control+k")
    page.keyboard.type("ann")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(PLAYER))
    page.goto("/players")
    page.wait_for_selector("#q")
    page.focus("#main")
    page.keyboard.press("Control+k")
    assert page.evaluate("document.activeElement.id") == "q"


@pytest.mark.parametrize("options", [{"scheme": "light"}, {"scheme": "dark"}, {"forced_colors": "active"}])
@pytest.mark.parametrize("path", ["/review?kind=avatars", "/replays?verdict=refuted"])
def test_the_current_tab_looks_different(console, running, path, options):
    """A background marks the tab, or a frame in forced colours, which remove backgrounds."""
    page = sign_in(console(**options), running.dsn, path)
    look = "tab => { const style = getComputedStyle(tab); return [style.backgroundColor, style.outlineStyle]; }"
    tabs = page.locator("#place nav .button")
    looks = {(tab.get_attribute("aria-current"), *tab.evaluate(look)) for tab in tabs.all()}
    (current,) = [look for current, *look in looks if current]
    (other,) = [look for current, *look in looks if not current]
    assert current != other


def test_replay_offers_the_act_that_fits_its_state(console, running, site):
    """A listed replay can be taken off the lists, a hidden one can be held, and a held replay can be listed again."""
    replay_id = Game(site, "bob").upload(game(3))
    page = sign_in(console(), running.dsn, f"/replays/{replay_id}")

    def offered():
        return [page.locator(f"button:has-text('{verb} …')").count() for verb in ("Unlist", "Hold", "List again")]

    assert offered() == [1, 0, 0]
    choose(page, "Unlist …", "cheating")
    page.wait_for_selector("dd:has-text('held')")
    assert offered() == [0, 0, 1]
    choose(page, "List again …", "cheating")
    page.wait_for_selector("dd:has-text('listed')")
    assert offered() == [1, 0, 0]
    run_sql(running.dsn, "INSERT INTO suspensions SELECT user_id, now(), NULL, NULL, false FROM replays")
    page.reload()
    page.wait_for_selector("dd:has-text('hidden')")
    assert offered() == [0, 1, 0]


def test_verified_game_can_be_watched_in_the_console(console, running, site):
    """The replay player shows all moves, and axe finds nothing."""
    player = Game(site, "bob")
    replay_id = player.upload(game(3))
    judge, visitor = Judge(), console()
    page = sign_in(visitor, running.dsn, f"/replays/{replay_id}")
    page.click("text=Watch")
    page.wait_for_selector("#player.ready")
    judge.look(visitor, "watching")
    assert page.locator("#transcript li").count() > 50
    page.click("#last")
    assert "Won with" in page.inner_text("#now")
    assert judge.found == []


def test_overview_keeps_old_numbers_when_a_refresh_fails(console, running):
    """The numbers are marked as old until newer ones arrive."""
    visitor = console()
    page = sign_in(visitor, running.dsn)
    page.wait_for_selector("#numbers dl")
    away = {"status": 503, "headers": {"Error-Code": "unavailable"}, "json": {"error": "service unavailable"}}
    page.route("**/api/admin/service*", lambda route: route.fulfill(**away))
    page.wait_for_selector("#numbers .old")
    assert page.locator("#numbers dl").count() == 1
    page.unroute("**/api/admin/service*")
    page.wait_for_selector("#numbers .old", state="detached")
    visitor.complaints.clear()  # expected: the browser reports the 503


def test_dialog_of_an_act_works_by_keyboard(console, running):
    """The first field has the focus, and Escape closes the dialog without an act."""
    visitor = console()
    page = sign_in(visitor, running.dsn, f"/players/{PLAYER}")
    button = page.locator("button", has_text="Lock …")
    button.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "act-reason"
    page.keyboard.press("Escape")
    page.wait_for_selector("#act", state="detached")
    assert run_sql(running.dsn, "SELECT count(*) FROM admin_acts") == [(0,)]


def test_ended_session_keeps_the_typed_text(console, running):
    """The sign-in opens over the dialog of an act, and the act runs with its typed text afterwards."""
    visitor = console()
    page = sign_in(visitor, running.dsn, f"/players/{PLAYER}")
    page.click("button:has-text('Lock …')")
    page.select_option("#act-reason", "other")
    page.fill("#act-note", "seen by hand")
    run_sql(running.dsn, "DELETE FROM admin_sessions")
    page.click("#act button:not([type])")
    code = new_code(CODE_DIGITS)
    put = "INSERT INTO admin_codes VALUES ('root', %s, now() + interval '1 minute')"
    run_sql(running.dsn, put, (digest(read_code(code, CODE_DIGITS)),))
    page.fill("#sign-in-name", "root")
    page.fill("#sign-in-code", code)
    page.click("#sign-in button.main")
    page.wait_for_selector("#act", state="detached")
    assert run_sql(running.dsn, "SELECT note FROM admin_notes") == [("seen by hand",)]


CUT = {"moves": game()["moves"][:30] + game()["moves"][31:]}


def refute(site, dsn, **changes):
    """Upload a changed game as bob, and refute it as a checker would; return its id and what its moves prove."""
    body = game(**changes)
    replay_id, proved = Game(site, "bob").upload(body), prove(encoded(body))
    row = (replay_id, msgspec.json.encode(proved).decode())
    run_sql(dsn, "DELETE FROM replay_checks; DELETE FROM verdicts WHERE replay_id = %s", (replay_id,))
    store = "INSERT INTO verdicts (replay_id, status, reason, checked_at, engine, proved)"
    run_sql(dsn, f"{store} VALUES (%s, 'refuted', 'score', now(), 3, %s)", row)
    return replay_id, proved


@pytest.mark.parametrize("changes", [{"final_score": 1110}, CUT], ids=["claim", "illegal"])
def test_evidence_of_a_refuted_game_is_shown_and_played(console, running, site, changes):
    """The list shows it without a click; the player shows the moves up to there, and announces no win."""
    replay_id, proved = refute(site, running.dsn, **changes)
    finding = in_words(str(changes.get("final_score", 90)), proved)
    judge, visitor = Judge(), console()
    page = sign_in(visitor, running.dsn, "/replays")
    assert finding in page.inner_text(f"tr:has(a[href='/replays/{replay_id}'])")
    visitor.open(f"/replays/{replay_id}")
    assert page.inner_text("#finding") == finding
    page.click("text=Watch")
    page.wait_for_selector("#player.ready")
    judge.look(visitor, "evidence")
    assert page.locator("#transcript li").count() == proved.moves
    page.click("#last")
    assert page.inner_text("#now").endswith(finding)
    assert "Won" not in page.inner_text("#now")
    assert judge.found == []


def test_seen_items_leave_the_review(console, running):
    """One click chooses all rows, another marks them; the page with what was seen names the admin."""
    visitor = console()
    page = sign_in(visitor, running.dsn, "/review?kind=names")
    assert page.locator("tbody tr").count() == 1
    page.click("text=Select all on this page")
    page.click("text=Mark 1 as seen")
    page.wait_for_selector("text=Nothing is new")
    assert page.evaluate("document.activeElement.id") == "main"
    assert run_sql(running.dsn, "SELECT kind, admin FROM review_seen") == [("names", "root")]
    page.click("text=Show what was seen, too")
    page.wait_for_selector("td:has-text('root')")
    page.check("tbody input")
    page.click("text=Mark 1 as new")
    page.wait_for_selector("td:has-text('root')", state="detached")
    assert run_sql(running.dsn, "SELECT count(*) FROM review_seen") == [(0,)]


def test_players_are_listed_in_an_order_and_a_state(console, running):
    """The page lists the newest without a search; a choice of order or state is in the URL, and a reload keeps it."""
    run_sql(
        running.dsn,
        "INSERT INTO users (id, username, password_hash, created_at, guest) VALUES"
        " (gen_random_uuid(), 'bob', 'x', now() + interval '1 s', NULL), (gen_random_uuid(), 'eve', 'x', now(), true)",
    )
    visitor = console()
    page = sign_in(visitor, running.dsn, "/players")

    def names():
        visitor.settle()
        return page.locator("tbody th").all_inner_texts()

    assert names()[0] == "bob"
    page.select_option("#sort", "last_used")
    page.wait_for_url("**/players?sort=last_used")
    assert names()[0] == "ann"
    page.click("nav[aria-label=State] >> text=Guests")
    page.wait_for_url("**state=guests**")
    page.reload()
    assert names() == ["eve"]
    assert page.input_value("#sort") == "last_used"
    page.click("text=Select all on this page")
    choose(page, "Suspend 1 player …", "spam")
    page.wait_for_selector("td:has-text('suspended')")


def test_record_reverses_an_act_after_a_reload(console, running):
    """The button has the reason of the act; the record has both. Filters are in the URL."""
    visitor = console()
    page = sign_in(visitor, running.dsn, f"/players/{PLAYER}")
    choose(page, "Suspend …", "spam", message="stop: now")
    choose(page, "Lock …", "name")
    visitor.open("/acts")
    page.click("tr:has-text('suspend') button")
    assert page.input_value("#act-reason") == "spam"
    page.click("#act button:not([type])")
    page.wait_for_selector("tr:has-text('unsuspend') button")
    page.click("tr:has-text('unsuspend') button")
    assert "stop: now" in page.inner_text("#act")
    page.click("#act button:not([type])")
    page.wait_for_selector("tr:has-text('unsuspend'):not(:has(button))")
    assert run_sql(running.dsn, "SELECT message FROM suspensions") == [("stop: now",)]
    page.select_option("#acts-reason", "name")
    page.fill("#acts-player", "ann")
    page.click("button:text-is('Filter')")
    page.wait_for_url("**reason=name**player=ann**")
    visitor.settle()
    assert page.locator("tbody th").all_inner_texts() == ["lock"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", page.inner_text("tbody time"))


def test_overview_loads_within_45_kib(console, running, figure):
    """The first load of the overview takes at most 45 KiB of files and data."""
    visitor = console()
    sign_in(visitor, running.dsn)
    sizes = []
    fresh = console()
    fresh.context.add_cookies(visitor.context.cookies())
    fresh.page.on("response", lambda response: sizes.append(response))
    fresh.open("/")
    total = sum(response.request.sizes()["responseBodySize"] for response in sizes)
    figure(f"first load of the console {total / 1024:.1f} KiB (45 KiB)")
    assert total < 45 * 1024
