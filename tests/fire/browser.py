"""A headless Chromium, driven by its DevTools protocol.

The protocol goes over two file descriptors that the browser inherits, so it needs neither a port nor a websocket.
Everything here blocks: call it in a thread.
"""

import itertools
import json
import os
import shutil
import signal
import socket

from tests.harness.chromium import FLAGS

READ, WRITE = 3, 4  # where --remote-debugging-pipe expects its two ends
PATIENCE_SECONDS = 90  # the page of the interface unfolds some forty routes in one go

# Resolves once `found()` is neither false nor null nor undefined.
WAIT = """new Promise(resolve => {
  const found = () => %s;
  const look = () => { const it = found(); if (it) { observer.disconnect(); resolve(it); } };
  const observer = new MutationObserver(look);
  observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  look();
})"""


class Browser:
    """One browser with one page, a fresh profile in `place`, and all that the page has complained about."""

    def __init__(self, place):
        self._numbers = itertools.count(1)
        self._received = b""
        self._session = {}
        self.events = []
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(PATIENCE_SECONDS)
        words = ["chromium", "--headless", *FLAGS, f"--user-data-dir={place / 'profile'}", "--remote-debugging-pipe"]
        log = os.open(place / "chromium.log", os.O_WRONLY | os.O_CREAT, 0o600)
        self._pid = os.posix_spawn(
            shutil.which("chromium"),
            words,
            os.environ | {"HOME": str(place)},
            file_actions=[(os.POSIX_SPAWN_DUP2, log, out) for out in (1, 2)]
            + [(os.POSIX_SPAWN_DUP2, theirs.fileno(), end) for end in (READ, WRITE)],
            setsid=True,
        )
        os.close(log)
        theirs.close()

    def open(self, url):
        """Lead a new page to `url`."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        attached = self.command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")
        self.command("Page.navigate", url=url)

    def evaluate(self, expression):
        """The value of an expression in the page; what is a promise is awaited."""
        answer = self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, found):
        """The value of an expression once it has a true one; it is looked at whenever the page changes."""
        return self.evaluate(WAIT % found)

    def click(self, selector):
        """Click on an element once there is one."""
        self.wait(f"(it => it && !it.disabled && (it.click(), true))(document.querySelector({json.dumps(selector)}))")

    def type(self, selector, text):
        """Write into a field once there is one."""
        self.wait(f"(it => it && (it.focus(), true))(document.querySelector({json.dumps(selector)}))")
        self.command("Input.insertText", text=text)

    def command(self, method, **parameters):
        """One command and its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **self._session}
        self._socket.sendall(json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def _receive(self):
        while b"\0" not in self._received:
            more = self._socket.recv(2**20)
            assert more, "the browser has ended"
            self._received += more
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    @property
    def complaints(self):
        """Errors and warnings in the console: of the page's scripts, of its policy, and requests that failed."""
        kinds = {
            "Runtime.exceptionThrown": lambda event: event["exceptionDetails"],
            "Runtime.consoleAPICalled": lambda event: event["type"] in ("error", "warning", "assert") and event["args"],
            "Log.entryAdded": lambda event: event["entry"]["level"] in ("error", "warning") and event["entry"],
        }
        told = [kinds[event["method"]](event["params"]) for event in self.events if event.get("method") in kinds]
        return [complaint for complaint in told if complaint]

    @property
    def requested(self):
        """Every URL that the page has asked for."""
        asked = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in asked]

    def close(self):
        """End the browser and all its processes."""
        self._socket.close()
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
