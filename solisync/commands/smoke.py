"""The smoke check: a new player uses a running service, from the registration to the deletion of the account.

The check leaves one anonymous analytics event.
"""

import secrets
import string
from base64 import b64decode
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime
from itertools import chain
from typing import TypeVar
from uuid import uuid4

from msgspec.structs import replace
from OpenSSL.SSL import Error as OpenSSLError
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.error import ConnectError
from twisted.internet.task import deferLater
from twisted.web.client import ResponseFailed

from ..client import ApiError, Client
from ..errors import FatalError
from ..rules.analytics import AnalyticsEvent, Batch
from ..rules.challenge import daily_challenge
from ..rules.events import BoardEvent, HelloEvent, ProgressEvent, StreamEvent
from ..rules.games import SentGame
from ..rules.replay_lists import RECENT_MAX

T = TypeVar("T")

PATIENCE_SECONDS = 120
EVENT_SECONDS = 10.0  # a proxy that buffers events holds them for longer
LIST_SECONDS = 3  # public lists may be a second old if another process serves them
# a PNG of one black pixel
PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABAQAAAAA3bvkkAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==")


async def smoke(url: str, reactor: ReactorBase) -> str:
    """Run the check at `url`, printing each step; returns the last line. Raises FatalError at the first failure.

    The account is deleted even if a step fails or the check is cancelled.
    """
    if not url.startswith(("http://", "https://")):
        raise FatalError(f"smoke check failed: {url!r} must begin with http:// or https://")
    check = _Smoke(Client(url), reactor)
    try:
        await check.play()
    except (ApiError, ConnectError, ResponseFailed, ValueError) as error:
        raise FatalError(f"smoke check failed: {_why(error)}") from None
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
        _expect(me.username == name, f"me returned another username: {me.username}")
        url = (await self._step("upload avatar", lambda: client.upload_avatar(PIXEL, "image/png"))).avatar_url or ""
        avatar = await self._step("avatar", lambda: client.avatar(url))
        _expect(avatar == PIXEL, "the avatar differs from the uploaded one")
        await self._step("remove avatar", client.delete_avatar)
        await self._refused("removed avatar", 404, lambda: client.avatar(url))
        await self._step("login", lambda: client.login(name, password))
        spent = await self._step("refresh", client.refresh)
        await self._step("refresh again", client.refresh)
        fresh, client.tokens = client.tokens, spent
        await self._refused("spent refresh token", 401, client.refresh)
        client.tokens = fresh
        sessions = await self._step("sessions", client.sessions)
        _expect([session.current for session in sessions] == [True, False], "the list doesn't have both sessions")
        await self._step("end the other session", lambda: client.end_session(sessions[1].id))
        former, password = password, secrets.token_urlsafe(16)
        await self._step("change password", lambda: client.change_password(former, password))
        await self._refused("wrong password", 401, lambda: client.login(name, password + "!"))
        codes = (await self._step("recovery codes", lambda: client.make_recovery_codes(password))).codes
        password = secrets.token_urlsafe(16)
        await self._step("recover", lambda: client.recover(name, codes[0].lower(), password))
        left = await self._step("recovery codes left", client.recovery_codes_left)
        _expect(left.left == len(codes) - 1, "recovery didn't spend exactly one code")
        await self._refused("unknown reset link", 401, lambda: client.reset(codes[0], password))
        await self._step("login of a page", lambda: self._log_in_as_a_page(name, password))
        challenge = await self._step("daily challenge", client.daily_challenge)
        print(f"     {challenge.date}: {challenge.description}")
        _expect(challenge == daily_challenge(challenge.date), "this version has another deal or goal for that day")
        cards = await self._step("deal", lambda: client.deal(challenge.seed, "DrawOne"))
        _expect(len({*chain(cards.stock, *cards.tableau)}) == 52, "the deal doesn't have 52 different cards")
        events = client.events("leaderboard")
        streams = await self._hear("stream of events", events, lambda event: isinstance(event, HelloEvent))
        progress = (await self._step("pull", client.pull)).merged
        progress = replace(progress, stats=replace(progress.stats, games_won=1, best_single_score=1))
        await self._step("push", lambda: client.push(progress))
        merged = (await self._step("pull again", client.pull)).merged
        _expect(merged.stats.games_played == 1, "pull didn't return the pushed progress")
        won = SentGame(
            game_id=str(uuid4()),
            mode="Classic",
            draw_mode="DrawOne",
            won=True,
            score=1,
            seconds=60,
            ended_at=datetime.now(UTC),
            undone=True,
        )
        for name_of_step in ("count a game", "count a game again"):
            games = (await self._step(name_of_step, lambda: client.count_games(won))).merged.stats.games_played
            _expect(games == 2, "the game wasn't counted once")
        if streams:
            await self._hear("event of the push", events, lambda event: isinstance(event, ProgressEvent) and event.own)
        await self._step("leaderboard opt-in", lambda: client.opt_in(name))
        if streams:
            await self._hear("event of the leaderboard", events, lambda event: event == BoardEvent("leaderboard"))
        await events.aclose()
        entry = await self._step("own entry", client.own_entry)
        _expect((entry.visible, entry.display_name) == (True, name), "own entry isn't the one that opt-in made")
        await self._step("leaderboard", client.leaderboard)
        await self._step("board", client.classic_board)
        await self._step("leaderboard opt-out", client.opt_out)
        replay = b'{"mode": "Classic", "draw_mode": "DrawOne", "final_score": 1, "time_seconds": 1.50,'
        replay += b' "recorded_at": "2026-01-01", "moves": [ ], "game_id": "%b"}' % str(uuid4()).encode()
        replay_id = await self._step("upload replay", lambda: client.upload_replay(replay))
        again = await self._step("upload replay again", lambda: client.upload_replay(replay))
        _expect(again == replay_id, "the same game was stored twice")
        await self._list("recent replays", replay_id, listed=True)
        proved = await self._step("recent verified replays", lambda: client.recent_replays(verified=True))
        _expect(replay_id not in [line.id for line in proved], "the verified replays include one without moves")
        public = (await self._step("replays of the player", lambda: client.player_replays(name))).replays
        _expect([line.id for line in public] == [replay_id], "the player's replays aren't exactly the uploaded one")
        fetched = await self._step("fetch replay", lambda: client.replay(replay_id))
        _expect(fetched == replay, "the fetched replay differs from the uploaded one")
        verdict = await self._step("verdict", lambda: client.verdict(replay_id))
        _expect(verdict.status in ("pending", "unreadable"), "a replay without moves is neither pending nor unreadable")
        await self._refused("timeline of a replay without moves", 409, lambda: client.timeline(replay_id))
        await self._step("unlist replay", lambda: client.set_listed(replay_id, False))
        await self._list("recent replays without it", replay_id, listed=False)
        await self._refused("player without listed replays", 404, lambda: client.player_replays(name))
        own = (await self._step("own replays", client.own_replays)).replays
        _expect(
            [(line.id, line.listed) for line in own] == [(replay_id, False)],
            "own replays aren't just the unlisted one",
        )
        exported = await self._step("export", client.export)
        _expect(replay in exported, "the export lacks the replay")
        await self._step("delete replay", lambda: client.delete_replay(replay_id))
        await self._refused("deleted replay", 404, lambda: client.replay(replay_id))
        event = AnalyticsEvent(id=str(uuid4()), event_type="smoke_check", client_time=datetime.now(UTC))
        batch = Batch(session_id=name, user_id=me.id, events=[event])
        receipt = await self._step("analytics", lambda: client.report(batch))
        _expect(receipt.accepted == 1, "the event was not accepted")
        receipt = await self._step("analytics again", lambda: client.report(batch))
        _expect(receipt.duplicates == 1, "the same event was stored twice")
        await self._step("delete account", client.delete_account)
        await self._refused("login after deletion", 401, lambda: client.login(name, password))

    async def _hear(
        self, name: str, events: AsyncGenerator[StreamEvent, None], wanted: Callable[[StreamEvent], bool]
    ) -> bool:
        """Read the stream up to a wanted event, skipping others: other players cause events of boards, too.

        Returns False if the service has no streams. Fails if a proxy holds events back.
        """

        async def search() -> None:
            event = None
            async for event in events:
                if wanted(event):
                    return
            raise ValueError(f"{name}: the stream ended before this event; the last event was {event}")

        async def hear() -> bool:
            try:
                await Deferred.fromCoroutine(search()).addTimeout(EVENT_SECONDS, self._reactor)
            except ApiError as error:
                if error.code != "not_found":
                    raise
                print("     this service has no streams")
                return False
            except TimeoutError:
                raise ValueError(f"{name}: not received within {EVENT_SECONDS:g} s") from None
            return True

        return await self._step(name, hear)

    async def _list(self, name: str, replay_id: str, *, listed: bool) -> None:
        """Fetch recent replays until they include this one, or lack it if not `listed`; fails after LIST_SECONDS."""

        async def look() -> None:
            for _ in range(LIST_SECONDS):
                recent = await self._client.recent_replays(RECENT_MAX)
                if (replay_id in [line.id for line in recent]) == listed:
                    return
                await deferLater(self._reactor, 1)
            raise ValueError(f"{name}: the replay is {'not' if listed else 'still'} in the list")

        await self._step(name, look)

    async def _log_in_as_a_page(self, name: str, password: str) -> None:
        """Log in with a browser's headers; fails if a proxy hides from the service which page a request comes from."""
        try:
            await self._client.browser_login(name, password)
        except ApiError as error:
            if error.code == "forbidden":
                raise ValueError(
                    f"{error}: a page at this address may not log in; does the proxy pass on Host as the browser sent"
                    " it, with the port if that isn't 443 (Host $host:$server_port)?"
                ) from None
            if error.code != "not_found":
                raise
            print("     this service has no pages")

    async def clean_up(self) -> None:
        if self._client.tokens is not None:
            await self._step("clean up: delete account", self._client.delete_account)

    async def _step(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make one call and print its outcome; at a rate limit, wait for Retry-After and retry."""
        waited = 0
        while True:
            try:
                result = await call()
            except ApiError as error:
                if error.status != 429 or error.retry_after is None or waited > PATIENCE_SECONDS:
                    print(f"fail {name}")
                    raise
                print(f"wait {name}: {error.retry_after} s, because of the rate limit", flush=True)
                waited += error.retry_after
                await deferLater(self._reactor, error.retry_after)
            else:
                print(f"ok   {name}", flush=True)
                return result

    async def _refused(self, name: str, status: int, call: Callable[[], Awaitable[object]]) -> None:
        """Make one call that must fail with `status`."""

        async def refused() -> None:
            try:
                await call()
            except ApiError as error:
                if error.status != status:
                    raise
            else:
                raise ValueError(f"{name} was accepted")

        await self._step(f"{name} is refused", refused)


def _why(error: Exception) -> str:
    """Return the error in one line; for a broken connection, its reasons."""
    if isinstance(error, ResponseFailed):
        reasons = [failure.value for failure in error.reasons]
        return "; ".join(_tls_error(reason) or str(reason) or type(reason).__name__ for reason in reasons)
    return str(error) or type(error).__name__


def _tls_error(error: BaseException) -> str:
    """Return the reasons in an OpenSSL error, a list of (library, function, reason); "" for other errors."""
    if not isinstance(error, OpenSSLError) or not error.args:
        return ""
    return "TLS: " + ", ".join(reason for _, _, reason in error.args[0])


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
