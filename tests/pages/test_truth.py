"""Pages show what the service knows: confirmed scores, today's name of a player, and when a game was played."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.checking.uploads import game, refuted
from tests.harness.constants import PASSWORD
from tests.harness.postgres import run_sql
from tests.pages.visitor import Game, until


def test_a_refuted_score_is_not_among_wins(visitor, site):
    """The start and the list of replays show verified games; with all uploads, each says what is known of it."""
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
    assert marks == {f"/replays/{proved}": "✓ Verified", f"/replays/{wrong}": "Not confirmed"}
    page.reload()
    visitor.settle()
    assert page.locator("#list tbody tr").count() == 2  # the filter is in the address


def test_a_renamed_player_has_the_new_name(visit, site, running):
    """In the header, on their own replay, and where they delete the account."""
    ann = visit()
    ann.register()
    replay_id = Game(site, login=True).upload(game())
    run_sql(running.dsn, "UPDATE users SET username = 'anna' WHERE username = 'ann'")
    page = ann.open(f"/replays/{replay_id}")
    page.wait_for_selector("#own:not([hidden])")
    until(page, "document.getElementById('me').textContent.endsWith('anna')")
    page = ann.open("/account")
    assert page.inner_text("h1") == "anna"
    page.click("#delete")
    page.fill("#delete-name", "anna")
    page.fill("#delete-password", PASSWORD)
    page.click("#delete-form button.danger")
    page.wait_for_url(f"{site}/")


def test_a_game_on_somebody_elses_name_is_not_ones_own(visit, site, running):
    """A browser that still has the former name does not take another player's game for its player's."""
    bob = visit()
    bob.register("bob")
    run_sql(running.dsn, "UPDATE users SET username = 'robert' WHERE username = 'bob'")
    replay_id = Game(site, "bob").upload(game())
    page = bob.open(f"/replays/{replay_id}")
    until(page, "document.getElementById('me').textContent.endsWith('robert')")
    assert page.is_hidden("#own")


@pytest.mark.parametrize(("precise", "told"), [(True, "2 days ago"), (False, "2 days ago")])
def test_played_is_when_it_was_played(visitor, site, precise, told):
    """By the replay, not when it came here; a date without a time is told in days."""
    moment = datetime.now(UTC) - timedelta(days=2)
    recorded = moment.isoformat() if precise else str(moment.date())
    replay_id = Game(site).upload(game(recorded_at=recorded))
    for path, place in (("/replays", "#list time"), (f"/replays/{replay_id}", "#played time")):
        page = visitor.open(path)
        assert page.inner_text(place) == told
        assert page.get_attribute(place, "title").startswith(f"{moment.day} {moment:%B %Y}")
