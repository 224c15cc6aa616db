"""What the pages weigh, and how fast one is there."""

import pytest

from tests.checking.uploads import game
from tests.pages.visitor import Game, until

KIB = 1024
LOADED = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .filter(entry => !/^.(api.|web.icon)/.test(new URL(entry.name).pathname))
  .map(entry => [entry.name, entry.decodedBodySize])"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@pytest.mark.parametrize(
    ("path", "kib", "requests"),
    [
        ("/", 34, 7),
        ("/replays", 34, 7),
        ("/leaderboard", 34, 6),
        ("/account", 36, 8),
        ("/daily", 34, 6),
        ("ID", 64, 10),
    ],
)
def test_a_page_is_light(visitor, site, figure, path, kib, requests):
    """Decoded, without the API and the window's icon, for somebody who is here for the first time."""
    replay_id = Game(site).upload(game())
    page = visitor.open(path.replace("ID", f"/replays/{replay_id}"))
    loaded = page.evaluate(LOADED)
    size = sum(size for _, size in loaded) / KIB
    figure(f"{path.replace('ID', '/replays/<id>')}: {size:.1f} KiB, {len(loaded)} requests")
    assert len(loaded) <= requests, loaded
    assert size <= kib, loaded


def test_a_share_page_is_there_within_a_second(visit, site, figure):
    """On a processor six times as slow as this one, with nothing in the cache."""
    replay_id = Game(site).upload(game())
    visitor = visit(width=390)
    tools = visitor.context.new_cdp_session(visitor.page)
    tools.send("Emulation.setCPUThrottlingRate", {"rate": 6})
    visitor.page.goto(f"/replays/{replay_id}")
    painted = until(visitor.page, PAINTED)
    visitor.page.wait_for_selector("#player.ready")
    ready = visitor.page.evaluate("performance.now()")
    figure(f"on a processor six times as slow: first paint after {painted:.0f} ms, board after {ready:.0f} ms")
    assert painted < 10_000  # ten times the target, for machines that are busy


def test_what_has_not_changed_is_not_sent_again(visitor, site):
    visitor.open("/")
    visitor.open("/replays")
    visitor.open("/")
    sizes = visitor.page.evaluate(
        "performance.getEntriesByType('resource').filter(e => e.name.includes('/web/')).map(e => e.transferSize)"
    )
    assert max(sizes) < 400  # a 304 and its headers
