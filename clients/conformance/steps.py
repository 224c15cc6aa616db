"""The steps of scenarios: each method of `Steps` without a device, and of `Orders` for a device, is a value of `do`."""

import asyncio
import signal
from typing import Any

from .device import Device, Failed
from .truth import differences
from .world import TRANSIENT, LeftOut, Unmet, World, until_done

# A payload of a player who has never played, and half of a surrogate pair, a number that no double holds, and depth.
ODD = (
    rb'{"user_id":"00000000-0000-0000-0000-000000000000","stats":{"games_played":0,"games_won":0,"games_lost":0,'
    rb'"win_streak_current":0,"win_streak_best":0,"avg_time_seconds":0,"fastest_win_seconds":null,"lifetime_score":0,'
    rb'"best_single_score":0,"draw_one_wins":0,"draw_three_wins":0,"last_modified":"1970-01-01T00:00:00Z",'
    rb'"__proto__":{"games_played":7}},"achievements":[],"progress":{"total_xp":0,"level":0,'
    rb'"daily_challenge_last_completed":null,"daily_challenge_streak":0,"weekly_goal_progress":{},'
    rb'"unlocked_card_backs":[0],"unlocked_backgrounds":[0],"last_modified":"1970-01-01T00:00:00Z"},'
    rb'"last_modified":"1970-01-01T00:00:00Z","half":"\ud83c","long":123456789012345678901234567890,"small":1e-400,'
    rb'"deep":' + 60 * b"[" + 60 * b"]" + b"}"
)


class Steps:
    """Steps that concern no device."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def kill_service(self) -> None:
        """Kill the service; another process replaces it."""
        await self._world.stage.kill_service()

    async def kill_database(self) -> None:
        """Kill PostgreSQL, which starts again."""
        await self._world.stage.kill_database()

    async def backup(self) -> None:
        """Make a backup of the database."""
        await self._world.stage.backup()

    async def restore(self) -> None:
        """Restore the backup."""
        self._world.restored = True
        await self._world.stage.restore()

    async def ready(self) -> None:
        """Wait until the service has come back."""
        await self._world.stage.ready()

    async def settle(self) -> None:
        """End all faults, and let all devices sync."""
        await self._world.settle()

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)


class Orders:
    """Orders to a device. Each returns the device's answer, and raises Failed."""

    def __init__(self, world: World, device: Device) -> None:
        self._world = world
        self._device = device
        self._guest = f"the guest of {device.name}"

    async def command(self, do: str, **fields: Any) -> dict[str, Any]:
        """Send a command that changes no truth."""
        await self._device.start()
        if do in ("verdict", "event") and do not in self._device.can:
            raise LeftOut(f"the driver doesn't know {do}")
        return await self._device.do(do, **fields)

    async def register(self, account: str = "ann") -> None:
        """Create an account."""
        await self._device.do("register", **self._world.credentials(account))
        self._world.sign_in(self._device, account)

    async def needs(self, ability: str) -> None:
        """Leave the scenario out if the driver lacks an ability."""
        await self._device.start()
        if ability not in self._device.can:
            raise LeftOut(f"the driver has no {ability}")

    async def login(self, account: str = "ann", takes_games: bool = False, **fields: Any) -> None:
        """Log in, with the account's password unless `fields` have another; perhaps with the games of a gone guest."""
        await self._device.do("login", **self._world.credentials(account) | fields)
        if takes_games:
            self._world.take_over(self._device, account)
        self._world.sign_in(self._device, account)

    async def guest(self, **fields: Any) -> None:
        """Sign in to the device's guest, or create it."""
        await self._device.do("guest", **fields)
        self._world.sign_in(self._device, self._guest)

    async def claim(self, account: str = "ann", **fields: Any) -> None:
        """Make the guest a player, with the usual password unless `fields` have another."""
        await until_done(self._device, "claim", TRANSIENT, **self._world.credentials(account) | fields)
        self._world.take_over(self._device, account)

    async def end_sessions(self) -> None:
        """End all sessions of the account, as another device or an operator would."""
        await self._world.call(self._device, "DELETE", "/api/sessions")

    async def delete_account(self) -> None:
        """Delete the account, as another program would."""
        await self._world.call(self._device, "DELETE", "/api/account")

    async def forget(self) -> None:
        """Restore a backup of the database from before the account began."""
        self._world.restored = True
        await self._world.stage.forget((await self._world.call(self._device, "GET", "/api/me"))["id"])

    async def odd_push(self) -> None:
        """Push other progress as another program would, with JSON that few programs write."""
        await self._world.call(self._device, "POST", "/api/sync/push", ODD)

    async def join(self, account: str = "ann") -> None:
        """Let a player take over the guest's games."""
        await until_done(self._device, "join", TRANSIENT, **self._world.credentials(account))
        self._world.take_over(self._device, account)
        self._world.begun[account] += 1

    async def logout(self) -> None:
        """Log out, which deletes a guest."""
        await self._device.do("logout")
        if self._device.account == self._guest:
            del self._world.truths[self._guest]
        self._device.account = None

    async def win(self) -> None:
        """Finish a won game."""
        await self._world.finish(self._device, self._world.games.won())

    async def lose(self) -> None:
        """Finish a lost game."""
        await self._world.finish(self._device, self._world.games.lost())

    async def again(self) -> None:
        """Finish the last game once more, as after a crash between the answer and the next screen."""
        await self._device.do("finish", game=self._last_game())

    async def sync(self, strict: bool = False) -> None:
        """Sync; only with `strict` it must succeed now."""
        try:
            await self._device.do("sync")
        except Failed as failure:
            if strict:
                raise
            self._world.check_login(self._device, failure)

    async def restart(self) -> None:
        """Kill the driver and start it again."""
        await self._device.kill()
        opened = await self._device.start()
        if opened.get("signed_in") != (self._device.account is not None):
            raise Unmet(f"{self._device.name}: signed_in is {opened.get('signed_in')} after a restart")

    async def kill(self) -> None:
        """Kill the driver, also during another step."""
        await self._device.kill()

    async def pause(self) -> None:
        """Stop the driver for a while, as when the machine sleeps."""
        self._device.signal(signal.SIGSTOP)

    async def resume(self) -> None:
        """Continue after a pause."""
        self._device.signal(signal.SIGCONT)

    async def release(self) -> None:
        """Forward the requests that the fault `hold` keeps."""
        self._device.proxy.release()

    async def disconnect(self) -> None:
        """Cut all connections of the device, also a stream."""
        await self._device.proxy.disconnect()

    async def online(self) -> None:
        """End all faults of the device."""
        self._device.proxy.clear()

    async def clock(self, seconds: float) -> None:
        """Set the device's clock."""
        self._device.clock = seconds
        await self._device.do("clock", seconds=seconds)

    async def verdict(self) -> dict[str, Any]:
        """Wait for the verdict on the last game."""
        return await self.command("verdict", game_id=self._last_game()["game_id"])

    async def totals(self) -> None:
        """Check that the device shows all games of the account, unsent ones too."""
        wrong = differences(self._world.truth_of(self._device).totals(), await self._device.do("totals"))
        if wrong:
            raise Unmet(f"{self._device.name} shows: {', '.join(wrong)}")

    def _last_game(self) -> dict[str, Any]:
        return self._world.truth_of(self._device).games[-1]
