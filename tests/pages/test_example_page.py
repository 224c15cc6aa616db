"""The example page of the npm package, which keeps its state in IndexedDB."""

import json
import shutil

import pytest

from tests.harness.constants import PASSWORD, PATIENCE, ROOT
from tests.pages.visitor import FLAGS

PACKAGE = ROOT / "clients" / "javascript"
FOLDER = "/package/"
BLOCKING = {"profile": {"default_content_setting_values": {"cookies": 2}}}  # no site may keep data


@pytest.fixture
def example(visitor):
    """Open the example on the origin of the service, in another tab each time."""
    visitor.context.route(
        f"**{FOLDER}**", lambda route: route.fulfill(path=PACKAGE / route.request.url.partition(FOLDER)[2])
    )

    def example():
        page = visitor.context.new_page()
        page.goto(f"{FOLDER}examples/index.html")
        return page

    return example


def shown(page, name, text):
    """Wait until the element with this id has this text."""
    page.wait_for_function(
        "([name, text]) => document.getElementById(name).textContent.includes(text)",
        arg=[name, text],
        timeout=1000 * PATIENCE,
    )


def test_example_page_counts_the_games_of_a_guest_over_two_tabs(example):
    first = example()
    shown(first, "who", "a guest")
    second = example()
    shown(second, "who", "a guest")
    for page, played in ((first, "of 1"), (second, "of 2"), (first, "of 3")):
        page.click("#play")
        shown(page, "won", played)
        shown(page, "unsent", "0")


def test_example_page_makes_the_guest_a_player(example):
    page = example()
    shown(page, "who", "a guest")
    page.fill("[name=username]", "ann")
    page.fill("[name=password]", PASSWORD)
    page.click("#claim button")
    shown(page, "who", "ann")
    shown(example(), "who", "ann")


OFFLINE = """async (folder) => {
  const { indexedDbStore, Solisync } = await import(`${folder}src/solisync.js`);
  window.solis = new Solisync("", { store: indexedDbStore("game"), background: false });
  const code = await solis.restoreOr(() => solis.guest()).then(() => "none", (error) => error.code);
  await solis.finish({ id: crypto.randomUUID(), won: true, score: 100, seconds: 60, draw: 1 });
  return [code, (await solis.totals()).games_won, await solis.unsent()];
}"""
ONLINE = """async () => {
  await solis.guest();
  await solis.sync();
  return [(await solis.me()).guest, (await solis.totals()).games_won, await solis.unsent()];
}"""


def test_games_are_stored_and_shown_before_the_rest_of_the_client_can_be_loaded(visitor):
    """Without a connection, a request fails as any other. The next one loads the rest and sends the game."""
    context = visitor.context
    context.route(f"**{FOLDER}**", lambda route: route.fulfill(path=PACKAGE / route.request.url.partition(FOLDER)[2]))
    context.route(f"**{FOLDER}src/service.js", lambda route: route.abort())
    page = visitor.open("/leaderboard")
    assert page.evaluate(OFFLINE, FOLDER) == ["network", 1, 1]
    context.unroute(f"**{FOLDER}src/service.js")
    assert page.evaluate(ONLINE) == [True, 1, 0]


def test_example_page_plays_when_the_browser_keeps_no_data_of_sites(chromium, site, tmp_path):
    """Chromium then refuses localStorage, IndexedDB and locks, each in its own way."""
    (tmp_path / "Default").mkdir()
    (tmp_path / "Default" / "Preferences").write_text(json.dumps(BLOCKING))
    options = {"executable_path": shutil.which("chromium"), "args": [*FLAGS], "base_url": site}
    context = chromium.browser_type.launch_persistent_context(tmp_path, **options)
    context.route(f"**{FOLDER}**", lambda route: route.fulfill(path=PACKAGE / route.request.url.partition(FOLDER)[2]))
    page = context.pages[0]
    page.goto(f"{FOLDER}examples/index.html")
    page.click("#play")
    shown(page, "won", "of 1")
    shown(page, "unsent", "0")
    context.close()
