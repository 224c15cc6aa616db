"""The driver of the JavaScript client in Chromium: `python -m clients.conformance.chromium`.

A page on the origin of the proxy runs the commands. The browser is controlled by the DevTools protocol over pipes, and
its requests for the client's modules are answered from their files. All other requests reach the proxy. A browser
serves one device after another. The store of each has a link to the browser's profile, for the driver that replaces a
killed one.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlsplit

MODULES = Path(__file__).resolve().parents[1] / "javascript"
FOLDER = "/.conformance/"
PAGE = b"""<!doctype html>
<script type="module">
import { commands } from "./commands.js";
import { indexedDbStore } from "./src/solisync.js";
const answer = commands(() => indexedDbStore("conformance"));
globalThis.answer = async (line) => JSON.stringify(await answer(JSON.parse(line)));
</script>
"""
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
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
)
LINE_BYTES = 64 * 1_048_576
TO_BROWSER, FROM_BROWSER = 3, 4  # the descriptors that Chromium uses for the protocol


class Browser:
    """A Chromium with a profile, and with a page that has loaded the client."""

    def __init__(self, profile: Path) -> None:
        self.profile = profile
        self._page: str | None = None
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the browser."""
        theirs, self._input = os.pipe()
        output, their_output = os.pipe()
        program = shutil.which("chromium")
        assert program is not None, "chromium is not installed"

        def connect() -> None:
            # The copies are above both numbers, so that neither replaces the other.
            reading, writing = os.dup(theirs), os.dup(their_output)
            os.dup2(reading, TO_BROWSER)
            os.dup2(writing, FROM_BROWSER)

        self._process = await asyncio.create_subprocess_exec(
            program,
            *FLAGS,
            f"--user-data-dir={self.profile}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=connect,
        )
        os.close(theirs)
        os.close(their_output)
        reader = asyncio.StreamReader(limit=LINE_BYTES)
        loop = asyncio.get_running_loop()
        self._pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(output, "rb")
        )
        self._later(self._read(reader))

    async def open(self, url: str) -> None:
        """Open a page on an origin, instead of the one before."""
        if self._page is not None:
            await self._send("Target.closeTarget", targetId=self._page)
        self._page = (await self._send("Target.createTarget", url="about:blank"))["targetId"]
        attached = await self._send("Target.attachToTarget", targetId=self._page, flatten=True)
        self._session = attached["sessionId"]
        await self._send("Fetch.enable", self._session, patterns=[{"urlPattern": f"*{FOLDER}*"}])
        await self._send("Page.enable", self._session)
        await self._send("Page.navigate", self._session, url=url + FOLDER)
        while not await self._evaluate("Boolean(globalThis.answer)"):
            await asyncio.sleep(0.02)

    async def answer(self, line: str) -> str:
        """Return the page's answer to a command."""
        answer: str = await self._evaluate(f"answer({json.dumps(line)})")
        return answer

    async def _evaluate(self, expression: str) -> Any:
        options = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        evaluated = await self._send("Runtime.evaluate", self._session, **options)
        if "exceptionDetails" in evaluated:
            raise RuntimeError(evaluated["exceptionDetails"])
        return evaluated["result"].get("value")

    async def _send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        os.write(self._input, json.dumps(message).encode() + b"\0")
        result: dict[str, Any] = await future
        return result

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            message = json.loads((await reader.readuntil(b"\0"))[:-1])
            if message.get("method") == "Fetch.requestPaused":
                self._later(self._serve(message["params"]))
            elif (waiting := self._waiting.pop(message.get("id"), None)) is None:
                continue
            elif "error" in message:
                waiting.set_exception(RuntimeError(message["error"]))
            else:
                waiting.set_result(message["result"])

    async def _serve(self, paused: dict[str, Any]) -> None:
        name = urlsplit(paused["request"]["url"]).path.partition(FOLDER)[2]
        body = (MODULES / name).read_bytes() if name else PAGE
        kind = "text/javascript" if name else "text/html; charset=utf-8"
        await self._send(
            "Fetch.fulfillRequest",
            self._session,
            requestId=paused["requestId"],
            responseCode=200,
            responseHeaders=[{"name": "Content-Type", "value": kind}],
            body=base64.b64encode(body).decode(),
        )

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Kill the browser."""
        self._process.kill()
        await self._process.wait()
        for task in self._tasks:
            task.cancel()
        self._pipe.close()
        os.close(self._input)


async def browser_for(store: Path, running: Browser | None) -> Browser:
    """Return a browser with the profile of a store; a new store gets the profile of the running browser."""
    link = store / "profile"
    if running is not None and not link.exists():
        link.symlink_to(running.profile)
    if running is not None and link.resolve() == running.profile:
        return running
    if running is not None:
        await running.end()
    if not link.exists():
        link.symlink_to(mkdtemp(prefix="profile-", dir=store.parent))
    started = Browser(link.resolve())
    await started.start()
    return started


async def drive(write: Callable[[str], None]) -> None:
    """Read commands until the end of the input."""
    lines = asyncio.StreamReader(limit=LINE_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    browser: Browser | None = None
    running: set[asyncio.Task[None]] = set()

    async def answer(line: str) -> None:
        assert browser is not None
        write(await browser.answer(line))

    while line := (await lines.readline()).decode():
        command = json.loads(line)
        if command["do"] == "open":
            browser = await browser_for(Path(command["store"]), browser)
            await browser.open(command["url"])
        task = asyncio.ensure_future(answer(line))
        running.add(task)
        task.add_done_callback(running.discard)
    if browser is not None:
        await browser.end()


def main() -> None:
    """Run the driver."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(drive(lambda text: print(text, flush=True)))


if __name__ == "__main__":
    main()
