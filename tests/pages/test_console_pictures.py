"""Pictures of the console for docs/console.md, written to the directory in SCREENSHOTS."""

import io
import os
from pathlib import Path

from tests.checking.uploads import game
from tests.harness.postgres import run_sql
from tests.pages.admin import choose, sign_in
from tests.pages.visitor import Game, Visitor

HAPPENED = """
    INSERT INTO account_history (happened_at, user_id, event, client, times)
    SELECT created_at, id, event, '203.0.113.' || ascii(username), 1
    FROM users, unnest(ARRAY['register', 'opted in']) AS event ORDER BY created_at, event DESC
"""
NUMBERS = """
    INSERT INTO daily_numbers (day, name, count, counted_at)
    SELECT (now() AT TIME ZONE 'UTC')::date - ago, name, CASE WHEN ago = 0 THEN most / 3 ELSE
        round(most * (1 - ago / 60.0) * (0.8 + 0.2 * sin(ago * 0.9 + most)))::int END, now()
    FROM generate_series(0, 29) AS ago, (VALUES ('registrations', 48), ('guests', 130), ('active', 900),
        ('replays', 420), ('verified', 380), ('refuted', 6), ('suspensions', 1), ('deletions', 3)) AS made (name, most)
"""
NAMES = ("Ann", "Bob", "Carla", "Dimitri", "Eve", "Felix")


def test_pictures_of_the_console(chromium, running, site, tmp_path):
    """The pictures show the overview and a player, on a wide screen in the light scheme."""
    from PIL import Image

    target = Path(os.environ.get("SCREENSHOTS") or tmp_path)
    target.mkdir(exist_ok=True)
    for number, name in enumerate(NAMES):
        player = Game(site, name.lower())
        player.seen_as(name)
        player.upload(game(number, undo=number > 3))
    run_sql(running.dsn, HAPPENED)
    run_sql(running.dsn, NUMBERS)
    run_sql(running.dsn, "INSERT INTO admins (name) VALUES ('root')")
    ((eve,),) = run_sql(running.dsn, "SELECT id::text FROM users WHERE username = 'eve'")
    visitor = Visitor(chromium, running.console, reduced_motion="reduce")
    visitor.context.set_extra_http_headers({})
    page = sign_in(visitor, running.dsn, f"/players/{eve}")
    choose(page, "Lock …", "name")
    visitor.settle()
    page.wait_for_selector("text=Unlock")
    for name, path in (("console-player", f"/players/{eve}"), ("console", "/")):
        visitor.open(path)
        page.wait_for_selector("table")
        page.evaluate("document.activeElement.blur()")
        image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        image.save(target / f"{name}-wide.webp", quality=72, method=6)
        assert (target / f"{name}-wide.webp").stat().st_size < 80_000
    visitor.context.close()
    assert visitor.complaints == []
