"""What exists during a scenario: the service, the devices, and the games that were really played."""

import asyncio
import json
import secrets
import signal
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .device import Broken, Device, Drivers, Failed
from .proxy import Proxy
from .stage import Stage
from .truth import Games, Truth

PASSWORD = "correct horse battery"
ANSWER_SECONDS = 60
SETTLE_SECONDS = 120.0
PAUSE_SECONDS = 0.1  # before another attempt, if the error has no retry_after
PAUSE_MOST = 5.0
TRANSIENT = ("network", "killed", "rate_limited", "unavailable", "internal")
SIGNED_OUT = ("unauthorized", "invalid_credentials", "signed_out")


@dataclass
class Result:
    """The result of a scenario: numbers of games, faults and logins, and all mistakes in words."""

    name: str
    wrong: list[str] = field(default_factory=list)
    games: int = 0
    faults: int = 0
    lost: int = 0
    doubled: int = 0
    logins_lost: int = 0
    left_out: str | None = None
    seconds: float = 0.0


class Unmet(Exception):
    """A step had another outcome than the scenario says."""


class LeftOut(Exception):
    """A driver lacks an optional command of the scenario."""


class World:
    """The devices of a scenario, and the truth about each account by its name in the scenario."""

    def __init__(self, result: Result, stage: Stage, drivers: Drivers, place: Path) -> None:
        self.result = result
        self.stage = stage
        self.games = Games()
        self.devices: dict[str, Device] = {}
        self.truths: dict[str, Truth] = {}
        self.begun: Counter[str] = Counter()  # answered commands that began a session, by account
        self._drivers = drivers
        self._place = place
        self._number = secrets.randbits(40)
        self.restored = False  # from a backup, so uploaded replays may be missing

    def devices_of(self, account: str) -> list[Device]:
        """Return the devices that are signed in to an account."""
        return [device for device in self.devices.values() if device.account == account]

    async def device(self, name: str, store_of: str | None = None) -> Device:
        """Return the device of this name. A new one gets its own store, or shares that of another device."""
        if name not in self.devices:
            store = self._place / f"{self._number:x}-{store_of or name}"
            store.mkdir(exist_ok=True)
            address = self._number * 8 + len(self.devices)
            parts = (10, address >> 16 & 255, address >> 8 & 255, address & 255)
            proxy = Proxy(lambda: self.stage.port, ".".join(map(str, parts)))
            device = Device(name, proxy, await proxy.open(), store, self._drivers)
            stage = self.stage
            proxy.kills = {"device": device.kill, "service": stage.kill_service, "database": stage.kill_database}
            self.devices[name] = device
        return self.devices[name]

    def credentials(self, account: str) -> dict[str, str]:
        """Return the username and the password of an account."""
        return {"username": f"{account}_{self._number:x}", "password": PASSWORD}

    def sign_in(self, device: Device, account: str) -> None:
        """Note that a device is signed in to an account."""
        self.begun[account] += 1
        early = self.truths.pop(self._key(device), Truth()) if device.account is None else Truth()
        self.truths.setdefault(account, Truth()).games += early.games
        device.account = account

    def _key(self, device: Device) -> str:
        return device.account or f"{device.name}, before a session"

    def truth_of(self, device: Device) -> Truth:
        """Return the games of a device's account; without a session, those for the next one."""
        return self.truths.setdefault(self._key(device), Truth())

    def take_over(self, device: Device, account: str) -> None:
        """Note that a device's games and logins as a guest belong to an account now."""
        assert device.account is not None
        self.truths.setdefault(account, Truth()).games += self.truths.pop(device.account).games
        self.begun[account] += self.begun.pop(device.account)
        device.account = account

    async def call(self, device: Device, method: str, path: str, body: bytes | None = None) -> Any:
        """Send a request with a device's access token, as another program would; return the answer."""
        url = f"http://127.0.0.1:{self.stage.port}{path}"
        headers = {"Authorization": device.proxy.authorization, "Content-Type": "application/json"}
        request = urllib.request.Request(url, body, headers, method=method)
        return await asyncio.to_thread(_read, request)

    async def finish(self, device: Device, game: dict[str, Any]) -> None:
        """Let a device finish a game, once more if it was killed."""
        self.truth_of(device).games.append(game)
        await until_done(device, "finish", ("killed",), game=game)

    async def settle(self) -> None:
        """End all faults; let each device sync until it succeeds, and once more to see the games of the others."""
        for device in self.devices.values():
            device.proxy.clear()
            device.signal(signal.SIGCONT)
        await self.stage.ready()
        for _ in range(2):
            for device in self.devices.values():
                if device.account is not None:
                    await self._until_done(device, "sync")

    async def check_session(self, device: Device) -> None:
        """Check that a device can still refresh its tokens: the access token alone works for a day after a mistake."""
        await self._until_done(device, "refresh")

    async def _until_done(self, device: Device, command: str) -> None:
        try:
            await until_done(device, command, TRANSIENT)
        except Failed as failure:
            self.check_login(device, failure)
            raise Unmet(f"{device.name}: {command} still fails with {failure.code}") from None

    def check_login(self, device: Device, failure: Failed) -> None:
        """Raise Unmet if a device has lost its login."""
        if failure.code in SIGNED_OUT:
            self.result.logins_lost += 1
            raise Unmet(f"{device.name}: the login is lost ({failure.code})")


def _read(request: urllib.request.Request) -> Any:
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        raise Broken(f"{request.method} {request.selector} failed with status {error.code}: {text}") from None


async def until_done(device: Device, command: str, codes: tuple[str, ...], **fields: Any) -> None:
    """Repeat a command while it fails with one of these codes, like a player who presses the button again."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        try:
            await device.do(command, **fields)
        except Failed as failure:
            if failure.code not in codes or time.monotonic() > deadline:
                raise
            await asyncio.sleep(min(failure.retry_after or PAUSE_SECONDS, PAUSE_MOST))
        else:
            return
