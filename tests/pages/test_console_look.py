"""The look of the console: low rows, whole words, coloured states, groups of acts, and the numbers of 30 days."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.harness.postgres import run_sql
from tests.pages.admin import PLAYER, paths, sign_in

TODAY = datetime.now(UTC).date()
LONGEST = """
    UPDATE users SET username = repeat('W', 32);
    UPDATE leaderboard SET display_name = repeat('W', 32);
    UPDATE account_history SET client = '2001:db8:1234:5678::/64';
    INSERT INTO admins (name) VALUES (repeat('w', 32));
    INSERT INTO admin_acts (actor_kind, actor, act, target, reason)
    SELECT 'admin', repeat('w', 32), 'remove_avatar', 'player', 'takeover' FROM generate_series(1, 3);
    INSERT INTO admin_notes (act_id, user_id, replay_id, note) SELECT act.id, user_id, replays.id, 'seen' FROM replays,
        admin_acts AS act
"""
BROKEN = """() => {
  const broken = [];
  for (const cell of document.querySelectorAll("td, tbody th")) {
    for (const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT); walker.nextNode(); ) {
      const range = document.createRange();
      range.selectNodeContents(walker.currentNode);
      const prose = walker.currentNode.parentElement.closest("bdi:not(.name)");
      const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (!prose && lines.size > 1) broken.push(walker.currentNode.data);
    }
  }
  return broken;
}"""
LOW = "() => [...document.querySelectorAll('tbody tr')].map(row => Math.round(row.getBoundingClientRect().height))"


@pytest.mark.parametrize("width", [900, 1280, 1920])
def test_tables_have_low_rows_and_break_no_text(console, running, width):
    """Verdicts, addresses, ids and times stay in one line beside long names. No page is wider than the screen."""
    visitor = console(width=width)
    sign_in(visitor, running.dsn)
    run_sql(running.dsn, LONGEST)
    for path in (*paths(running.dsn), "/acts?act=remove_avatar", "/players?q=W"):
        page = visitor.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate(BROKEN) == [], path
        if path.startswith(("/replays", "/players?", "/review?kind=players")):
            assert {*page.evaluate(LOW)} <= {35, 36, 37}, path


def test_overview_shows_yesterday_beside_the_week_before(console, running):
    """Each number has bars for 30 days; a table has the values for screen readers."""
    run_sql(
        running.dsn,
        "INSERT INTO daily_numbers SELECT %s::date - ago, name, CASE ago WHEN 0 THEN 3 WHEN 1 THEN 1234 ELSE ago END,"
        " now() FROM generate_series(0, 40) AS ago, unnest(ARRAY['registrations', 'replays']) AS name",
        (TODAY,),
    )
    page = sign_in(console(), running.dsn)
    tile = page.locator("#days figure").first
    assert tile.inner_text().split("\n") == ["Registrations", "1,234", "week before 5 a day · today 3"]
    assert tile.locator("rect").count() == 30
    assert tile.locator("rect title").nth(28).text_content().endswith(": 1,234")
    uncounted = page.locator("#days figure", has_text="Active players")
    assert uncounted.inner_text().split("\n") == ["Active players", "–", "week before – a day · today –"]
    rows = page.get_by_role("table", name="The last 30 days, in UTC").locator("tbody tr")
    assert rows.count() == 30
    assert rows.nth(1).inner_text().split("\t")[1] == "1,234"
    yesterday = (TODAY - timedelta(days=1)).strftime("%-d %b")
    assert rows.nth(1).inner_text().startswith(yesterday)


def test_acts_on_a_player_are_grouped(console, running):
    """The groups are named, and only the last one has what can't be undone."""
    page = sign_in(console(), running.dsn, f"/players/{PLAYER}")
    groups = {
        name: page.get_by_role("group", name=name).locator("button, .button").all_inner_texts()
        for name in ("Profile", "Access", "Danger")
    }
    assert groups["Access"] == ["Suspend …", "End sessions …", "Restore access …"]
    assert groups["Danger"] == ["Delete …"]
    assert {"Rename entry …", "Lock …", "Export"} < {*groups["Profile"]}


def test_selection_stays_in_sight(console, running):
    """The button that suspends the selected players is at the bottom of the window, however long the list is."""
    run_sql(
        running.dsn,
        "INSERT INTO users (id, username, password_hash, created_at)"
        " SELECT gen_random_uuid(), 'b' || n, 'x', now() FROM generate_series(1, 60) AS n",
    )
    page = sign_in(console(), running.dsn, "/players?q=b")
    page.locator("tbody input").first.check()
    box = page.locator("button", has_text="Suspend 1 player …").bounding_box()
    assert 0 < box["y"] < box["y"] + box["height"] <= page.viewport_size["height"]


@pytest.mark.parametrize(("width", "hint"), [(390, "Find a player"), (1280, "Find a player (Ctrl+K)")])
def test_header_marks_the_section_and_hints_at_keys(console, running, width, hint):
    """The page of a player belongs to Players. Phones have no Ctrl+K."""
    page = sign_in(console(width=width), running.dsn, f"/players/{PLAYER}")
    assert page.locator("header [aria-current]").all_inner_texts() == ["Players"]
    assert page.locator("#find").get_attribute("placeholder") == hint
