"""Tests of the store that the crate `solisync-client` has in browsers, by its JavaScript alone."""

import pytest

from tests.harness.constants import ROOT

FILE = ROOT / "clients" / "rust" / "client" / "src" / "indexed_db.js"
ORIGIN = "http://127.0.0.1:9"
PAGE = "<!doctype html><title>game</title>"
SANDBOXED = f'{PAGE}<iframe sandbox="allow-scripts" src="/frame"></iframe>'
WITHOUT_LOCAL_STORAGE = "Object.defineProperty(globalThis, 'localStorage', { value: null });"
OPENED = """async (name) => {
  globalThis.store = await import("/indexed_db.js");
  return store.openStore(name).catch((error) => error.name);
}"""
STORED = """async (name) => {
  const database = await new Promise((resolve) => {
    const asked = indexedDB.open(name);
    asked.onsuccess = () => resolve(asked.result);
  });
  const asked = database.transaction(name).objectStore(name).get(name);
  return new Promise((resolve) => (asked.onsuccess = () => resolve(asked.result)));
}"""


@pytest.fixture
def page(chromium):
    """Open pages of one browser on an origin: `page(html, script that runs before others)`."""
    contexts = [chromium.new_context()]

    def serve(route):
        if route.request.url.endswith(".js"):
            headers = {"Access-Control-Allow-Origin": "*", "Content-Type": "text/javascript"}
            route.fulfill(path=FILE, headers=headers)
        else:
            route.fulfill(body=PAGE if route.request.url.endswith("/frame") else html[-1], content_type="text/html")

    html = []
    contexts[0].route(f"{ORIGIN}/**", serve)

    def page(body=PAGE, script=""):
        html.append(body)
        page = contexts[0].new_page()
        page.add_init_script(script)
        page.goto(ORIGIN)
        return page

    yield page
    contexts[0].close()


def test_store_belongs_to_one_client_of_one_tab(page):
    first, second = page(), page()
    assert first.evaluate(OPENED, "game") is True
    assert first.evaluate(OPENED, "game") is False
    assert second.evaluate(OPENED, "game") is False
    first.close()
    second.wait_for_function("store.openStore('game')")


def test_next_client_of_a_page_has_what_the_last_one_saved(page):
    """The first value isn't stored yet when the next client opens the store, and never replaces its value."""
    tab = page()
    tab.evaluate(OPENED, "game")
    tab.evaluate("store.save('game', '1'); store.closeStore('game');")
    values = "store.openStore('game').then((opens) => [opens, store.valueOf('game')])"
    assert tab.evaluate(values) == [True, "1"]
    tab.evaluate("store.save('game', '2'); store.flush('game')")
    assert tab.evaluate(STORED, "game") == 2


def test_store_fails_to_open_where_the_browser_keeps_nothing(page):
    """A game may then use a store in memory."""
    frame = page(SANDBOXED).frames[1]
    opened = frame.evaluate(
        "(source) => Promise.race([eval(source)('game'), new Promise((r) => setTimeout(r, 5000))])", OPENED
    )
    assert opened == "SecurityError"


def test_store_opens_after_an_error_that_has_passed(page):
    tab = page()
    tab.evaluate("globalThis.open = indexedDB.open; indexedDB.open = () => { throw new RangeError() }; 0")
    assert tab.evaluate(OPENED, "game") == "RangeError"
    tab.evaluate("delete indexedDB.open")
    assert tab.evaluate(OPENED, "game") is True


def test_store_needs_no_local_storage(page):
    tab = page(script=WITHOUT_LOCAL_STORAGE)
    tab.evaluate(OPENED, "game")
    tab.evaluate("store.save('game', '1'); store.flush('game')")
    assert tab.evaluate(STORED, "game") == 1


def test_value_is_stored_that_is_saved_right_after_a_flush(page):
    """The flush has nothing to store, and has not ended yet."""
    tab = page()
    tab.evaluate(OPENED, "game")
    tab.evaluate("store.flush('game'); store.save('game', '1')")
    tab.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
    assert tab.evaluate(STORED, "game") == 1
