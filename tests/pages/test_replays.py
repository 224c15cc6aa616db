"""Tests of the list of replays and of the page of a player: contents, filters and the time of a game."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.checking.uploads import game, refuted
from tests.harness.postgres import run_sql
from tests.pages.visitor import Game, picture, until


def test_rows_name_difficulty_and_draw_mode(visitor, site):
    """The list and the page of the replay name both, and the address has the filter."""
    replay = next(each for each in map(game, range(6)) if each["draw_mode"] == "DrawThree")
    replay_id = Game(site).upload({**replay, "mode": {"Difficulty": "Hard"}})
    page = visitor.open("/replays")
    row = page.inner_text("#list tbody tr")
    assert "Draw three" in row
    assert "Difficulty" in row
    page.select_option("[name=mode]", "Zen")
    assert page.locator("#list tr").count() == 0
    page.reload()
    visitor.settle()
    assert page.input_value("[name=mode]") == "Zen"
    assert "None of the newest" in page.inner_text("#list")
    page = visitor.open(f"/replays/{replay_id}")
    assert page.inner_text("#mode") == "Difficulty"
    assert "[object" not in page.inner_text("body")


def test_refuted_score_is_not_among_wins(visitor, site):
    """The start and the list show only verified games. The list of all uploads shows each verdict."""
    ann = Game(site)
    proved, wrong = ann.upload(game()), ann.upload(refuted())
    for path, place in (("/", "#wins"), ("/replays", "#list")):
        page = visitor.open(path)
        assert page.locator(f"{place} tbody a").get_attribute("href") == f"/replays/{proved}"
        assert page.inner_text(f"{place} .mark") == "✓ Verified"
    page.select_option("[name=check]", "all")
    visitor.settle()
    marks = {
        row.locator("a").get_attribute("href"): row.locator(".mark").inner_text()
        for row in page.locator("#list tbody tr").all()
    }
    assert marks == {f"/replays/{proved}": "✓ Verified", f"/replays/{wrong}": "✗ Score rejected"}
    page.reload()
    visitor.settle()
    assert page.locator("#list tbody tr").count() == 2  # the address has the filter


@pytest.mark.parametrize(("precise", "told"), [(True, "2 days ago"), (False, "2 days ago")])
def test_time_played_comes_from_the_replay(visitor, site, precise, told):
    """The time is of the game, not of the upload. A date without a time is shown in days."""
    moment = datetime.now(UTC) - timedelta(days=2)
    recorded = moment.isoformat() if precise else str(moment.date())
    replay_id = Game(site).upload(game(recorded_at=recorded))
    for path, place in (("/replays", "#list time"), (f"/replays/{replay_id}", "#played time")):
        page = visitor.open(path)
        assert page.inner_text(place) == told
        assert page.get_attribute(place, "title").startswith(f"{moment.day} {moment:%B %Y}")


def test_search_finds_a_player_by_name(visitor, site):
    Game(site).upload(game())
    page = visitor.open("/replays")
    page.fill("#find-name", "nobody")
    page.click("#find button")
    until(page, "document.getElementById('find-refused').textContent === 'No player with this name has public games.'")
    page.fill("#find-name", "ann")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site}/players/ann")


def test_replay_links_to_its_player(visitor, site):
    """The player's page has the public games, a button for older ones, and the avatar if the visitor is signed in."""
    ann = Game(site)
    for number in range(22):
        ann.call("POST", "/api/replays", {**game(), "moves": [], "final_score": number})
    shared = ann.call("GET", "/api/players/ann/replays")["replays"][0]["id"]
    page = visitor.open(f"/replays/{shared}")
    page.click("h1 a")
    page.wait_for_url(f"{site}/players/ann")
    visitor.settle()
    assert page.inner_text("h1").split() == ["A", "ann"]
    assert page.locator("#list tbody tr").count() == 20
    page.click("#more")
    until(page, "document.querySelectorAll('#list tbody tr').length === 22")
    assert page.is_hidden("#more")
    visitor.sign_in()
    page.set_input_files("#file", picture())
    page.click("#crop button.main")
    page.wait_for_selector("#avatar img")
    page = visitor.open("/players/ann")
    page.wait_for_selector("#face img")


def test_older_games_are_below_the_newest(visitor, site, running):
    """Each click shows fifty more, until there are no others. Filters apply to all shown games."""
    ann = Game(site)
    ann.upload(game(mode="Zen"))
    player = ann.call("GET", "/api/me")["id"]
    run_sql(
        running.dsn,
        "INSERT INTO replays (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds,"
        " recorded_at) SELECT gen_random_uuid(), %s, now() + make_interval(secs => n), '{}', 2, 'Classic', 'DrawOne',"
        " '1', '1', '2026-01-01' FROM generate_series(1, 110) AS n",
        (player,),
    )
    page = visitor.open("/replays?check=all")
    rows = page.locator("#list tbody tr")
    for shown in (50, 100, 111):
        assert rows.count() == shown
        if shown < 111:
            page.click("#more")
            visitor.settle()
    assert page.is_hidden("#more")
    assert page.inner_text("#said").startswith("11 older games")
    page.select_option("[name=mode]", "Zen")
    assert rows.count() == 1


@pytest.mark.parametrize(
    ("zone", "recorded", "received", "now", "words"),
    [
        # a morning in Tokyo, in which the UTC day changes at nine
        ("Asia/Tokyo", "2026-12-06", "2026-12-06T23:10:00Z", "2026-12-07T01:00:00Z", "today"),
        ("Asia/Tokyo", "2026-12-06", "2026-12-06T14:50:00Z", "2026-12-06T15:10:00Z", "yesterday"),
        # an evening in Los Angeles, in which it changes at four
        ("America/Los_Angeles", "2026-12-07", "2026-12-07T01:00:00Z", "2026-12-07T03:00:00Z", "today"),
        ("America/Los_Angeles", "2026-12-07", "2026-12-07T01:00:00Z", "2026-12-07T17:00:00Z", "yesterday"),
        ("America/Los_Angeles", "2026-12-07", "2026-12-06T23:59:59Z", "2026-12-07T00:30:00Z", "today"),
        ("UTC", "2026-12-01", "2026-12-06T12:00:00Z", "2026-12-06T13:00:00Z", "5 days ago"),
        ("UTC", "2025-12-01", "2026-12-06T12:00:00Z", "2026-12-06T13:00:00Z", "last year"),
        ("Asia/Tokyo", "2026-12-06T21:10:00Z", "2026-12-06T23:10:00Z", "2026-12-06T23:12:00Z", "2 hours ago"),
    ],
)
def test_game_was_played_on_a_day_of_the_device(visit, zone, recorded, received, now, words):
    """A recorded date is a day in UTC. The days that the page counts begin at midnight where the player is."""
    visitor = visit(timezone_id=zone)
    visitor.page.clock.set_fixed_time(now)
    page = visitor.open("/leaderboard")
    told = page.evaluate("async game => (await web('page.js')).played(game).textContent",
        {"recorded_at": recorded, "received_at": received})  # fmt: skip
    assert told == words


@pytest.mark.parametrize("path", ["/replays", "/players/ann", "/account", "ID"])
def test_all_pages_count_the_days_of_the_device(visit, site, running, path):
    """A win of seven in the evening in Los Angeles was played today, although its day in UTC is the next one."""
    ann = Game(site)
    replay_id = ann.upload({**game(), "recorded_at": "2026-12-07"})
    run_sql(running.dsn, "UPDATE replays SET received_at = '2026-12-07 03:00Z'")
    visitor = visit(timezone_id="America/Los_Angeles")
    visitor.sign_in()
    visitor.page.clock.set_fixed_time("2026-12-07T04:00:00Z")

    def later(route):
        """The service remembers its first page of the list from before the update."""
        answer = route.fetch().json()
        for each in answer["replays"]:
            each["received_at"] = "2026-12-07T03:00:00Z"
        route.fulfill(json=answer)

    visitor.context.route("**/api/replays/recent?*before=*", later)
    page = visitor.open(path.replace("ID", f"/replays/{replay_id}"))
    until(page, "document.querySelector('main time[datetime^=\"2026-12-07\"]')")
    assert page.inner_text("main time[datetime^='2026-12-07']") == "today"
