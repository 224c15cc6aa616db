"""The driver of `Device` for the tests in clients/conformance, whose README.md has the protocol.

It reads commands as lines of JSON from the standard input, and writes the answers to the standard output.
"""

import sys
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from twisted.internet.defer import CancelledError, Deferred, DeferredQueue
from twisted.internet.error import ConnectError, ConnectionClosed
from twisted.internet.stdio import StandardIO
from twisted.internet.task import deferLater
from twisted.protocols.basic import LineOnlyReceiver
from twisted.web.client import ResponseFailed, ResponseNeverReceived

from ..process.entry_point import monotonic_reactor
from ..rules.events import NAMES
from .device import Device
from .journal import FinishedGame
from .transport import ApiError

NO_ANSWER = (
    ConnectError,
    ConnectionClosed,
    CancelledError,
    ResponseFailed,
    ResponseNeverReceived,
    msgspec.MsgspecError,
)
COUNTERS = ("games_played", "games_won", "games_lost", "lifetime_score", "draw_one_wins", "draw_three_wins")
SHOWN = (*COUNTERS, "best_single_score", "fastest_win_seconds")
WITHOUT_SESSION = ("open", "clock", "register", "login", "guest", "finish")
POLL_SECONDS = 0.2


class Driver:
    """Carries out commands with a device."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._device: Device | None = None
        self._ahead = timedelta()
        self._events: dict[str, DeferredQueue[dict[str, Any]]] = {}
        self._following: Deferred[None] | None = None

    @property
    def device(self) -> Device:
        """The device of the last `open`."""
        assert self._device is not None, "open first"
        return self._device

    async def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out one command and return its answer."""
        number, do = command.pop("id"), command.pop("do")
        work: Callable[..., Coroutine[Any, Any, dict[str, Any] | None]] = getattr(self, f"do_{do}")
        try:
            if do not in WITHOUT_SESSION and not self.device.signed_in:
                return {"id": number, "error": {"code": "signed_out"}}
            return {"id": number, "ok": await work(**command) or {}}
        except ApiError as error:
            code = error.code or "network"
            if code == "unauthorized" and not self.device.signed_in:
                code = "signed_out"
            return {
                "id": number,
                "error": {"code": code, "status": error.status, "retry_after": error.retry_after},
            }
        except NO_ANSWER as error:
            return {"id": number, "error": {"code": "network", "message": repr(error)}}

    async def do_open(self, url: str, store: str, clock: float) -> dict[str, Any]:
        """Open a device, instead of another one."""
        if self._device is not None:
            self._device.close()
        await self.do_clock(clock)
        following, self._following, self._events = self._following, None, {}
        self._device = Device(url, Path(store), now=lambda: datetime.now(UTC) + self._ahead)
        if following is not None:
            following.cancel()
        return {"signed_in": self.device.signed_in, "can": ["verdict", "event"]}

    async def do_clock(self, seconds: float) -> None:
        """Set the clock."""
        self._ahead = timedelta(seconds=seconds)

    async def do_register(self, username: str, password: str) -> None:
        """Create an account."""
        await self.device.register(username, password)

    async def do_login(self, username: str, password: str) -> None:
        """Log in."""
        await self.device.login(username, password)

    async def do_guest(self) -> None:
        """Create a guest."""
        await self.device.guest()

    async def do_claim(self, username: str, password: str) -> None:
        """Make the guest a player."""
        await self.device.claim(username, password)

    async def do_join(self, username: str, password: str) -> None:
        """Take the guest's games over to a player."""
        await self.device.join_as(username, password)

    async def do_logout(self) -> None:
        """Log out."""
        await self.device.logout()

    async def do_refresh(self) -> None:
        """Exchange the tokens."""
        await self.device.refresh()

    async def do_me(self) -> dict[str, Any]:
        """Name the player."""
        me = await self.device.me()
        return {"username": me.username, "guest": bool(me.guest)}

    async def do_finish(self, game: dict[str, Any]) -> None:
        """Store a finished game."""
        self.device.finish(msgspec.convert(game, FinishedGame), game["replay"])

    async def do_sync(self) -> None:
        """Send and fetch everything."""
        await self.device.sync()

    async def do_totals(self) -> dict[str, Any]:
        """Return the statistics that a game would show."""
        progress = self.device.progress()
        if progress is None:
            await self.device.sync()
            progress = self.device.progress()
        assert progress is not None
        return {name: getattr(progress.stats, name) for name in SHOWN}

    async def do_verdict(self, game_id: str) -> dict[str, Any]:
        """Wait for the verdict on an uploaded game."""
        replay_id = self.device.replay_of(game_id)
        assert replay_id is not None, "sync first"
        while (verdict := await self.device.verdict(replay_id)).status == "pending":
            await deferLater(self._reactor, POLL_SECONDS)
        return {"status": verdict.status}

    async def do_event(self, name: str) -> dict[str, Any]:
        """Wait for the next event of this name."""
        if self._following is None:
            self._following = Deferred.fromCoroutine(self._follow()).addErrback(lambda failure: None)
        return {"data": await self._queue(name).get()}

    async def _follow(self) -> None:
        """Read one stream after another, with the pauses that the service wants."""
        device = self.device
        while self._device is device:
            with suppress(ApiError, *NO_ANSWER):
                async with aclosing(device.events()) as events:
                    async for event in events:
                        self._queue(NAMES[type(event)]).put(msgspec.to_builtins(event))
                await deferLater(self._reactor, device.retry_seconds)

    def _queue(self, name: str) -> DeferredQueue[dict[str, Any]]:
        return self._events.setdefault(name, DeferredQueue())


class Commands(LineOnlyReceiver):
    """Reads commands and writes answers."""

    delimiter = b"\n"
    MAX_LENGTH = 1_048_576

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._driver = Driver(reactor)

    def lineReceived(self, line: bytes) -> None:
        """Begin a command."""
        answered = Deferred.fromCoroutine(self._driver.answer(msgspec.json.decode(line)))
        answered.addCallback(lambda answer: self.sendLine(msgspec.json.encode(answer)))
        answered.addErrback(lambda failure: failure.printTraceback(sys.stderr))

    def connectionLost(self, reason: Any = None) -> None:
        """Exit at the end of the input."""
        if self._reactor.running:
            self._reactor.stop()


def main() -> None:
    """Run the driver."""
    reactor = monotonic_reactor()
    StandardIO(Commands(reactor))
    reactor.run()


if __name__ == "__main__":
    main()
