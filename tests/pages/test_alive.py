"""The day has a goal that means something, and players find their progress, their name and each other."""

import pytest

from tests.checking.uploads import game
from tests.harness.boards import check
from tests.harness.payloads import progress_of
from tests.harness.postgres import run_sql
from tests.pages.visitor import Game, picture, until


def test_the_day_says_who_met_its_goal(visitor, site, running):
    """By the time of their own clock; the switch shows these alone, and the start has the deal too."""
    for number, (name, seconds) in enumerate((("ann", 100), ("bob", 5000), ("eve", 120))):
        player = Game(site, name)
        player.seen_as(name.title())
        replay_id = player.upload({**game(), "seed": 1364344767969826, "moves": [], "time_seconds": seconds})
        run_sql(running.dsn, "UPDATE replays SET received_at = '2026-04-26T12:00Z' WHERE id = %s", (replay_id,))
        check(running.dsn, replay_id, 600 + number)
    assert "3 players on the leaderboard won it" in visitor.open("/daily/2026-04-26").inner_text("#won")
    visitor.sign_in()
    page = visitor.open("/daily/2026-04-26")  # within 8 minutes
    tagged = page.locator("#winners tr:has(.tag:text-is('Goal met, by its own clock'))")
    assert tagged.locator("a").all_text_contents() == ["Eve", "Ann"]
    page.check("#only-met")
    until(page, "document.querySelectorAll('#winners tbody a').length === 2")
    assert page.locator("#winners tbody a").all_text_contents() == ["Eve", "Ann"]
    assert page.locator(".deal span").count() == 7
    assert page.inner_text("#left") == ""
    for path in ("/daily", "/"):
        page = visitor.open(path)
        assert page.inner_text("#left").endswith("left")
        assert page.locator(".deal b").count() == 7


@pytest.mark.parametrize(
    ("score", "seconds", "is_met"), [(745, 214, True), (745, 216, False), (3999, 9_999_999, False)]
)
def test_a_goal_in_points_counts_the_bonus_for_speed(visitor, site, running, score, seconds, is_met):
    """As the desktop game's win screen adds it: 700,000 points by the seconds."""
    ann = Game(site)
    ann.seen_as("Ann")
    replay_id = ann.upload({**game(), "seed": 1364344767969823, "moves": [], "time_seconds": seconds})
    run_sql(running.dsn, "UPDATE replays SET received_at = '2026-04-23T12:00Z' WHERE id = %s", (replay_id,))
    check(running.dsn, replay_id, score)
    visitor.sign_in()
    page = visitor.open("/daily/2026-04-23")
    assert "4,000 points" in page.inner_text(".goal")
    assert page.locator("#winners .tag", has_text="Goal met").count() == is_met


def test_players_find_their_progress(visit, site):
    """On the start and in the account: what their games have pushed."""
    ann = visit()
    ann.register()
    assert "No games yet" in ann.page.inner_text("#standing")
    stats = {"games_played": 1140, "games_won": 61, "best_single_score": 690, "fastest_win_seconds": 142}
    pushed = progress_of(**{f"stats__{name}": value for name, value in stats.items()})
    Game(site, login=True).call("POST", "/api/sync/push", pushed)
    for path in ("/", "/account"):
        facts = ann.open(path).inner_text("#standing")
        for fact in ("61 of 1,140", "690", "2:22", "Not won yet"):
            assert fact in facts
    assert ann.open("/").inner_text("h1") == "Welcome back, ann"
    assert visit().open("/").locator("#standing").count() == 0


def test_a_name_is_chosen_where_it_is_shown(visit, site):
    """In the account and on the leaderboard: both know it, though no entry has it yet, and both let one leave."""
    ann = visit()
    ann.register()
    page = ann.page
    page.fill("#display-name", "Newcomer N.")
    page.click("#name-form button.main")
    until(page, "document.getElementById('seen').textContent === 'You appear as “Newcomer N.”.'")
    page = ann.open("/leaderboard")
    assert page.inner_text("#seen") == "You appear as “Newcomer N.”."
    assert page.input_value("#display-name") == "Newcomer N."
    page.click("#leave")
    until(page, "document.getElementById('said').textContent === 'You have left the leaderboard.'")
    assert "choose to appear" in page.inner_text("#seen")
    assert page.locator("#leave").count() == 0
    assert page.input_value("#display-name") == "Newcomer N."


def test_a_replay_leads_to_its_player(visitor, site):
    """Whose page has the public games, older ones on demand, and the avatar for players."""
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
    page.set_input_files("#file", {"name": "me.jpg", "mimeType": "image/jpeg", "buffer": picture()})
    page.click("#crop button.main")
    page.wait_for_selector("#avatar img")
    page = visitor.open("/players/ann")
    page.wait_for_selector("#face img")


def test_a_picture_can_be_dragged_and_given_up(visit):
    """By the mouse instead of the sliders; cancelling leaves everything as it was."""
    ann = visit()
    ann.register()
    page = ann.page
    file = {"name": "me.jpg", "mimeType": "image/jpeg", "buffer": picture()}
    page.set_input_files("#file", file)
    page.wait_for_selector("#crop:not([hidden])")
    box = page.locator("#crop canvas").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 100, steps=4)
    page.mouse.up()
    assert float(page.input_value("#x")) > 0.5
    assert float(page.input_value("#y")) == 0.5
    page.click("#crop button:has-text('Cancel')")
    assert page.is_hidden("#crop")
    assert page.locator("#avatar img").count() == 0


def test_all_other_devices_are_signed_out_at_once(visit, site):
    """And this one is not."""
    ann = visit()
    ann.register()
    for _ in range(3):
        Game(site, login=True)
    page = ann.open("/account")
    page.click("#sign-out-others")
    until(page, "document.querySelectorAll('#devices tbody tr').length === 1")
    assert page.locator("#devices .tag").inner_text() == "This browser"
    assert page.is_hidden("#sign-out-others")


def test_creating_an_account_begins_where_the_link_says(visitor):
    page = visitor.open("/")
    page.get_by_role("link", name="Create an account").click()
    until(page, "document.activeElement.id === 'new-name'")
    page.fill("#new-password", "correct horse")
    page.locator("#new-form .reveal").check()
    assert page.get_attribute("#new-password", "type") == "text"


def test_a_picture_is_enlarged_with_two_fingers(visit):
    """Which move apart on it."""
    ann = visit()
    ann.register()
    page = ann.page
    page.set_input_files("#file", {"name": "me.jpg", "mimeType": "image/jpeg", "buffer": picture()})
    page.wait_for_selector("#crop:not([hidden])")
    box = page.locator("#crop canvas").bounding_box()
    _pinch(page, box, 60)
    assert float(page.input_value("#zoom")) > 1.5


def test_two_fingers_on_a_replay_make_no_step(visit, site):
    """They enlarge the page; one finger that is swiped goes on."""
    replay_id = Game(site).upload(game())
    visitor = visit(width=390, has_touch=True)
    page = visitor.open(f"/replays/{replay_id}?move=10")
    page.wait_for_selector("#player.ready")
    box = page.locator("#board").bounding_box()
    _pinch(page, box, 60)
    assert page.input_value("#seek") == "10"
    assert page.evaluate("visualViewport.scale") > 1.2


def _pinch(page, box, apart):
    """Move two fingers apart, each by so many pixels, in the middle of something."""
    tools = page.context.new_cdp_session(page)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def touch(kind, distance):
        points = [{"x": x - distance, "y": y, "id": 0}, {"x": x + distance, "y": y, "id": 1}]
        tools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points if distance else []})

    touch("touchStart", 30)
    for step in range(1, 11):
        touch("touchMove", 30 + apart * step / 10)
    touch("touchEnd", 0)


def test_what_is_left_of_a_day_is_said_as_one_would(visitor):
    """Without hours where there are none."""
    page = visitor.open("/replays")
    left = """async (minutes) => {
      const { timeLeft } = await import("/web/page.js");
      const place = document.createElement("p");
      timeLeft(place, new Date(Date.now() - 86_400_000 + minutes * 60_000 - 1000).toISOString());
      return place.textContent;
    }"""
    texts = [page.evaluate(left, minutes) for minutes in (54, 61, 120, 1, 0)]
    assert texts == [
        "54 minutes left",
        "1 hour 1 minute left",
        "2 hours left",
        "1 minute left",
        "This day has ended (UTC).",
    ]


def test_a_day_leads_to_others(visit, site):
    """By seven chips, of which those are marked that the player has won, or by the calendar."""
    ann = visit()
    ann.register()
    won = progress_of(progress__daily_challenge_history=["2026-04-24"], stats__games_played=1)
    Game(site, login=True).call("POST", "/api/sync/push", won)
    page = ann.open("/daily/2026-04-26")
    page.wait_for_selector(".chip.won")
    chips = [chip.get_attribute("href")[7:] for chip in page.locator(".chip").all()]
    assert chips == [f"2026-04-{day}" for day in range(23, 30)]
    assert page.locator(".chip.won").get_attribute("href") == "/daily/2026-04-24"
    assert page.locator(".chip[aria-current]").get_attribute("href") == "/daily/2026-04-26"
    page.fill("#week input", "2025-12-24")
    page.wait_for_url(f"{site}/daily/2025-12-24")


def test_a_player_is_found_by_name(visitor, site):
    Game(site).upload(game())
    page = visitor.open("/replays")
    page.fill("#find-name", "nobody")
    page.click("#find button")
    until(page, "document.getElementById('find-refused').textContent === 'No player with this name has public games.'")
    page.fill("#find-name", "ann")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site}/players/ann")


@pytest.mark.parametrize(("motion", "moves"), [("no-preference", True), ("reduce", False)])
def test_cards_rise_on_a_win(visit, site, motion, moves):
    """But not for those who prefer less motion."""
    replay_id = Game(site).upload(game())
    visitor = visit(reduced_motion=motion)
    page = visitor.open(f"/replays/{replay_id}?move=9999")
    page.wait_for_selector("#player.ready")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    until(page, "document.getElementById('seek').value === document.getElementById('seek').max")
    risen = "document.querySelectorAll('.foundation li:last-child')[3].getAnimations().length"
    assert bool(page.evaluate(risen)) is moves
