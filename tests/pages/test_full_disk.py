"""Tests of games in a browser whose disk is full."""

import contextlib
import shutil
import subprocess

import pytest

from tests.harness.constants import PATIENCE, ROOT
from tests.pages.player import JOURNALS, journals, until_journals
from tests.pages.visitor import FLAGS, PRELUDE, until

MIB = 1 << 20
RUST_FILE = ROOT / "clients" / "rust" / "client" / "src" / "indexed_db.js"
ENTER = """async (count) => {
  const { enter } = await web("journal.js");
  for (let number = 0; number < count; number++) {
    const id = crypto.randomUUID();
    await enter({ id, won: true, score: 1, seconds: 9, draw: 1, replay: { moves: "x".repeat(20_000) } }, new Date());
  }
}"""
GUEST = f"{JOURNALS}.of['']"
STORE = """async (work) => {
  const { indexedDbStore } = await web("indexed_db.js");
  const store = (window.store ??= indexedDbStore("game"));
  const count = ({ games = [] } = {}) => games.length;
  if (work === "read") return store.read().then(count, () => "error");
  return store.change((value = { key: "of the guest", games: [] }) => {
    value.games.push("x".repeat(20_000));
    return [value, value.games.length];
  }).catch(() => "error");
}"""
RUST_STORE = """async (work) => {
  const store = await import("/web/rust/indexed_db.js");
  if (!window.opened) window.opened = await store.openStore("game");
  const games = JSON.parse(store.valueOf("game") ?? "[]");
  if (work === "read") return games.length;
  store.save("game", JSON.stringify([...games, "x".repeat(20_000)]));
  return store.flush("game").then(() => games.length + 1, () => "error");
}"""
STORED = """new Promise((resolve) => {
  const opening = indexedDB.open("game");
  opening.onerror = () => resolve();
  opening.onsuccess = () => {
    const asked = opening.result.transaction("game").objectStore("game").get("game");
    asked.onsuccess = asked.onerror = () => resolve(asked.result);
    opening.result.close();
  };
})"""


@pytest.fixture
def disk(tmp_path):
    """A file system of 160 MiB."""
    image, place = tmp_path / "image", tmp_path / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(160 * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    mounted = subprocess.run(["mount", "-o", "loop", image, place], check=False)
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small file system")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def browser(site, disk, chromium):
    """Start a browser with its profile on that disk, on /play: `browser()` starts it again."""
    with contextlib.ExitStack() as stack:
        running = []

        def browser():
            if running:
                running.pop().close()
            options = {"executable_path": shutil.which("chromium"), "args": [*FLAGS, "--disk-cache-size=1"]}
            context = chromium.browser_type.launch_persistent_context(
                disk / "profile", base_url=site, service_workers="block", **options
            )
            running.append(context)
            context.add_init_script(PRELUDE)
            context.route("**/web/rust/indexed_db.js", lambda route: route.fulfill(path=RUST_FILE))
            page = context.pages[0]
            page.goto("/play")
            until(page, "document.querySelector('#board li')")
            return page

        stack.callback(lambda: [context.close() for context in running])
        yield browser


def fill(file):
    """Fill the file system, to the last byte."""
    with file.open("wb", buffering=0) as ballast:
        for size in (MIB, 4096, 1):
            with contextlib.suppress(OSError):
                while ballast.write(bytes(size)):
                    pass


def test_full_disk_loses_no_finished_game(browser, disk):
    """All games of both tabs are there when the disk has room again, and the page says that it can't store them."""
    page = browser()
    page.evaluate(ENTER, 8)
    other = page.context.new_page()
    other.goto("/play")
    fill(disk / "ballast")
    page.evaluate(ENTER, 5)
    assert "can’t save finished games now" in page.inner_text("#waiting")
    assert journals(page, f"{GUEST}.games.length") == 13
    other.evaluate(ENTER, 1)
    (disk / "ballast").unlink()
    until_journals(other, f"{GUEST}.games.length === 14")
    until_journals(other, f"{JOURNALS}.unsaved === 0")
    until(page, "!document.getElementById('waiting').textContent", 2 * PATIENCE)
    page = browser()
    assert journals(page, f"{GUEST}.games.length") == 14


def test_full_disk_leaves_the_stored_value_alone(browser, disk):
    """A change fails, nothing reads as empty, and the next change with room continues from the last stored value."""
    page = browser()
    for number in range(1, 6):
        assert page.evaluate(STORE, "change") == number
    fill(disk / "ballast")
    outcomes = [page.evaluate(STORE, work) for work in ("change", "read") * 3]
    kept = max([5, *(outcome for outcome in outcomes if outcome != "error")])
    assert "error" in outcomes[::2]
    assert set(outcomes[1::2]) <= {"error", 5, kept}
    (disk / "ballast").unlink()
    assert page.evaluate(STORE, "change") == kept + 1
    page = browser()
    assert page.evaluate(STORE, "read") == kept + 1


def test_full_disk_loses_nothing_of_the_rust_client(browser, disk):
    """Each value is stored within seconds after the disk has room, and a browser that starts again has the last one."""
    page = browser()
    for number in range(1, 6):
        assert page.evaluate(RUST_STORE, "change") == number
    fill(disk / "ballast")
    outcomes = [page.evaluate(RUST_STORE, "change") for _ in range(3)]
    assert "error" in outcomes
    (disk / "ballast").unlink()
    until(page, f"{STORED}.then((games) => games?.length === 8)", 2 * PATIENCE)
    page = browser()
    assert page.evaluate(RUST_STORE, "read") == 8
