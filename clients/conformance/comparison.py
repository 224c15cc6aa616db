"""Comparing what was played with what the service has stored, and with what each device shows."""

from collections import Counter
from typing import Any

from .device import Device
from .messages import BEGINNINGS
from .truth import Truth, differences, stored_replays, stored_totals
from .world import World


class Comparison:
    """Compares the accounts of a world, and adds the mistakes to its result."""

    def __init__(self, world: World, extra_sessions: int, sessions: int | None) -> None:
        self._world = world
        self._result = world.result
        self._extra_sessions = extra_sessions
        self._sessions = sessions

    async def make(self) -> None:
        """Compare each account that a device is signed in to."""
        for account, truth in self._world.truths.items():
            if devices := self._world.devices_of(account):
                await self._compare(account, truth, devices)

    async def _compare(self, account: str, truth: Truth, devices: list[Device]) -> None:
        export = await self._export(devices[0])
        expected, stored = truth.totals(), stored_totals(export)
        missing = expected["games_played"] - stored["games_played"]
        self._result.games += expected["games_played"]
        self._result.doubled += max(0, -missing)
        self._result.lost += max(0, missing)
        for text in differences(expected, stored):
            self._note(f"{account}: {text}")
        self._compare_replays(account, truth, stored_replays(export))
        self._compare_sessions(account, devices, len(export["sessions"]))
        for device in devices:
            await self._world.check_session(device)
            me = await device.do("me")
            if me.get("username") != export["account"]["username"]:
                self._note(f"{device.name} says that it is {me.get('username')}")
            for text in differences(stored, await device.do("totals")):
                self._note(f"{device.name} shows: {text}")

    def _compare_replays(self, account: str, truth: Truth, stored: Counter[str]) -> None:
        expected = Counter(game["game_id"] for game in truth.games if game["won"])
        if (missing := (expected - stored).total()) and not self._world.restored:
            self._note(f"{account}: {missing} replays are lost")
            self._result.lost += missing
        if extra := (stored - expected).total():
            self._note(f"{account}: {extra} replays too many")
            self._result.doubled += extra

    def _compare_sessions(self, account: str, devices: list[Device], stored: int) -> None:
        """A login without an answer may leave a session that no device has."""
        forwarded = (device.proxy.forwarded for device in self._world.devices.values())
        unanswered = sum(each[route] for each in forwarded for route in BEGINNINGS) - self._world.begun.total()
        unanswered += self._extra_sessions
        expected = len({device.store for device in devices})
        if self._sessions is not None:
            expected, unanswered = self._sessions, 0
        if not expected <= stored <= expected + unanswered:
            self._note(f"{account}: {stored} sessions instead of {expected}")

    def compare_forwarded(self, expected: dict[str, dict[str, int]]) -> None:
        """Compare the numbers of requests that devices have sent, by route."""
        for name, routes in expected.items():
            for route, number in routes.items():
                count = self._world.devices[name].proxy.forwarded[route]
                if count != number:
                    self._note(f"{name} sent {count} requests of the route {route} instead of {number}")

    def _note(self, text: str) -> None:
        self._result.wrong.append(text)

    async def _export(self, device: Device) -> dict[str, Any]:
        """Return all that the service has stored about the player of a device, with that device's access token."""
        await device.do("me")
        return dict(await self._world.call(device, "GET", "/api/me/export"))
