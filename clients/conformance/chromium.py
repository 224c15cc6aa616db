"""The driver of a client in Chromium: `python -m clients.conformance.chromium [FOLDER]`.

A page on the origin of the proxy runs the commands of the JavaScript client, or those of `page.html` in a folder. The
browser's requests for its modules are answered from their files; all others reach the proxy. A browser serves one
device after another. The store of each has a link to the browser's profile, for the driver that replaces a killed one.
"""

import asyncio
import contextlib
import json
import shutil
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, BrowserType, Page, Route, async_playwright

MODULES = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "javascript")
FOLDER = "/.conformance/"
PAGE = """<!doctype html>
<script type="module">
import { commands } from "./commands.js";
import { indexedDbStore } from "./src/solisync.js";
const answer = commands(() => indexedDbStore("conformance"));
globalThis.answer = async (line) => JSON.stringify(await answer(JSON.parse(line)));
</script>
"""
FLAGS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-sandbox",
    "--no-zygote",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=OptimizationHints,MediaRouter",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "about:blank",
)
LINE_BYTES = 64 * 1_048_576


async def serve(route: Route) -> None:
    """Answer a request for the page or a module of the client."""
    name = urlsplit(route.request.url).path.partition(FOLDER)[2]
    if name:
        kind = "application/wasm" if name.endswith(".wasm") else "text/javascript"
        await route.fulfill(path=MODULES / name, content_type=kind)
    else:
        own = MODULES / "page.html"
        page = own.read_text("utf-8") if own.exists() else PAGE
        await route.fulfill(body=page, content_type="text/html; charset=utf-8")


class Driver:
    """A Chromium with a profile, and with a page that has loaded the client."""

    def __init__(self, chromium: BrowserType) -> None:
        self._chromium = chromium
        self._process: asyncio.subprocess.Process | None = None
        self._context: BrowserContext
        self._profile: Path
        self._page: Page

    async def open(self, store: Path, url: str) -> None:
        """Open a page on an origin, in a browser with the profile of a store.

        A new store gets the present profile, without the data of an earlier device on the same port.
        """
        link = store / "profile"
        is_new = not link.exists()
        if self._process is not None and not link.exists():
            link.symlink_to(self._profile)
        if self._process is None or link.resolve() != self._profile:
            await self.end()
            if not link.exists():
                link.symlink_to(mkdtemp(prefix="profile-", dir=store.parent))
            self._profile = link.resolve()
            await self._start()
        for page in self._context.pages:
            await page.close()
        self._page = await self._context.new_page()
        if is_new:
            session = await self._context.new_cdp_session(self._page)
            await session.send("Storage.clearDataForOrigin", {"origin": url, "storageTypes": "all"})
        await self._page.goto(url + FOLDER)
        await self._page.wait_for_function("Boolean(globalThis.answer)")

    async def _start(self) -> None:
        """Start Chromium as a child, because Playwright's own browser outlives the signals that kill this driver."""
        program = shutil.which("chromium")
        assert program is not None, "chromium is not installed"
        address = self._profile / "DevToolsActivePort"
        address.unlink(missing_ok=True)
        self._process = await asyncio.create_subprocess_exec(
            program, *FLAGS, f"--user-data-dir={self._profile}", stdout=DEVNULL, stderr=DEVNULL
        )
        while not address.exists() or len(lines := address.read_text().split()) < 2:
            await asyncio.sleep(0.02)
        port, path = lines
        browser = await self._chromium.connect_over_cdp(f"ws://127.0.0.1:{port}{path}")
        self._context = browser.contexts[0]
        await self._context.route(f"**{FOLDER}**", serve)

    async def answer(self, line: str) -> str:
        """Return the page's answer to a command."""
        answer: str = await self._page.evaluate("line => answer(line)", line)
        return answer

    async def end(self) -> None:
        """Kill the browser."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()


async def drive(write: Callable[[str], None]) -> None:
    """Read commands until the end of the input."""
    lines = asyncio.StreamReader(limit=LINE_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    running: set[asyncio.Task[None]] = set()
    async with async_playwright() as playwright:
        driver = Driver(playwright.chromium)

        async def answer(line: str) -> None:
            write(await driver.answer(line))

        try:
            while line := (await lines.readline()).decode():
                command = json.loads(line)
                if command["do"] == "open":
                    await driver.open(Path(command["store"]), command["url"])
                task = asyncio.ensure_future(answer(line))
                running.add(task)
                task.add_done_callback(running.discard)
        finally:
            await driver.end()


def main() -> None:
    """Run the driver."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(drive(lambda text: print(text, flush=True)))


if __name__ == "__main__":
    main()
