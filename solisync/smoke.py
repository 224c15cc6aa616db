"""The smoke check: one whole session against a running service, step by step, leaving nothing behind."""

import secrets
import string
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace
from twisted.internet.base import ReactorBase
from twisted.internet.error import ConnectError
from twisted.internet.task import deferLater
from twisted.web.client import ResponseFailed

from .client import ApiError, Client
from .errors import CannotStart

T = TypeVar("T")

PATIENCE_SECONDS = 120


async def smoke(url: str, reactor: ReactorBase) -> str:
    """Play one session at `url`, printing each step; returns the last line. Raises CannotStart at the first failure.

    The account it makes is deleted also when a step fails.
    """
    check = _Smoke(Client(url), reactor)
    try:
        await check.play()
    except (ApiError, ConnectError, ResponseFailed, ValueError) as error:
        raise CannotStart(f"smoke check failed: {str(error) or type(error).__name__}") from None
    finally:
        await check.clean_up()
    return "all steps passed"


class _Smoke:
    def __init__(self, client: Client, reactor: ReactorBase) -> None:
        self._client = client
        self._reactor = reactor

    async def play(self) -> None:
        client = self._client
        name = "smoke_" + "".join(secrets.choice(string.ascii_lowercase) for _ in range(10))
        password = secrets.token_urlsafe(16)
        alive = await self._step("health", client.live)
        print(f"     version {alive.version}")
        await self._step("ready", client.ready)
        await self._step("register", lambda: client.register(name, password))
        me = await self._step("me", client.me)
        _expect(me.username == name, f"me is {me.username}")
        await self._step("login", lambda: client.login(name, password))
        spent = await self._step("refresh", client.refresh)
        await self._step("refresh again", client.refresh)
        fresh, client.tokens = client.tokens, spent
        await self._refused("spent refresh token", 401, client.refresh)
        client.tokens = fresh
        await self._refused("wrong password", 401, lambda: client.login(name, password + "!"))
        challenge = await self._step("daily challenge", client.daily_challenge)
        print(f"     {challenge.date}: {challenge.description}")
        progress = (await self._step("pull", client.pull)).merged
        progress = replace(progress, stats=replace(progress.stats, games_won=1, best_single_score=1))
        await self._step("push", lambda: client.push(progress))
        merged = (await self._step("pull again", client.pull)).merged
        _expect(merged.stats.games_played == 1, "the pushed progress did not come back")
        await self._step("leaderboard opt-in", lambda: client.opt_in(name))
        await self._step("leaderboard", client.leaderboard)
        await self._step("leaderboard opt-out", client.opt_out)
        await self._step("delete account", client.delete_account)
        await self._refused("login after deletion", 401, lambda: client.login(name, password))

    async def clean_up(self) -> None:
        if self._client.tokens is not None:
            await self._step("clean up: delete account", self._client.delete_account)

    async def _step(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        """One call, waiting out a rate limit as the service asks."""
        waited = 0
        while True:
            try:
                result = await call()
            except ApiError as error:
                if error.status != 429 or error.retry_after is None or waited > PATIENCE_SECONDS:
                    print(f"fail {name}")
                    raise
                print(f"wait {name}: {error.retry_after} s, as the rate limit says", flush=True)
                waited += error.retry_after
                await deferLater(self._reactor, error.retry_after)
            else:
                print(f"ok   {name}", flush=True)
                return result

    async def _refused(self, name: str, status: int, call: Callable[[], Awaitable[object]]) -> None:
        """One call that must be refused with `status`."""

        async def refused() -> None:
            try:
                await call()
            except ApiError as error:
                if error.status != status:
                    raise
            else:
                raise ValueError(f"{name} was accepted")

        await self._step(f"{name} is refused", refused)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
