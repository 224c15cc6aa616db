"""A typed HTTP client of the service on Twisted, for tests, smoke checks and game tools (docs/protocol.md).

The methods need a running reactor: `asyncio.run` works only with Twisted's reactor for asyncio. The client keeps the
player's pair of tokens. If an access token is refused, it refreshes the pair and tries once more. Concurrent calls
share one refresh. Passwords are sent as given: a tool that reads one from a person sends it in Unicode's NFC.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import date
from typing import Any, overload
from urllib.parse import urlencode, urlsplit

import msgspec
from twisted.web.iweb import IResponse

from ..klondike import Timeline
from ..rules.accounts import AuthRequest, LogoutRequest, Me, TokenPair
from ..rules.analytics import Batch, Receipt
from ..rules.boards import BoardPage
from ..rules.browser_sessions import BrowserLogin, BrowserSession
from ..rules.challenge import DailyChallenge, DealtCards
from ..rules.events import StreamEvent
from ..rules.games import Games, GamesAnswer, SentGame
from ..rules.guests import ClaimRequest, GuestKeyChange, GuestPair, GuestRequest, JoinRequest
from ..rules.leaderboard import Entry, OptIn, OwnEntry
from ..rules.recovery import CodesLeft, CodesRequest, Recovery, RecoveryCodes, Reset
from ..rules.replay_lists import RECENT_DEFAULT, Listed, OwnReplays, PlayerReplays, Recent, RecentReplays
from ..rules.replays import Uploaded, VerdictAnswer
from ..rules.sessions import PasswordChange, Session
from ..rules.shapes import Alive, Ok, Ready
from ..rules.sync import Payload, SyncAnswer
from .bodies import read_events
from .transport import ApiError, Transport

__all__ = ["ApiError", "Client"]


class Client(Transport):
    """The client of one player, anonymous until `register` or `login`; `url` is the root of the service.

    Methods raise ApiError for an error response, and treq's exceptions without a response.
    """

    async def register(self, username: str, password: str, retry_key: str | None = None) -> TokenPair:
        """Create an account, whose player the client is from then on; with the same key, it may be repeated."""
        return await self._begin("/api/auth/register", AuthRequest(username, password, retry_key=retry_key), TokenPair)

    async def login(self, username: str, password: str, retry_key: str | None = None) -> TokenPair:
        """Log in; the client is this player's from then on. With the same key, it may be repeated."""
        return await self._begin("/api/auth/login", AuthRequest(username, password, retry_key=retry_key), TokenPair)

    async def guest(self, guest_key: str | None = None, *, create: bool = True) -> GuestPair:
        """Create a guest, or sign in to the guest with this key; the client is this guest's from then on."""
        return await self._begin("/api/auth/guest", GuestRequest(guest_key, create), GuestPair)

    async def change_guest_key(self, guest_key: str, former_key: str | None = None) -> Ok:
        """Give the guest a key, or replace the former one, which ends the guest's other sessions."""
        return await self._as_player("PUT", "/api/me/guest-key", Ok, body=GuestKeyChange(guest_key, former_key))

    async def claim(self, username: str, password: str, *, list_replays: bool = False) -> Me:
        """Give the guest a username and a password, which makes the guest a player; may be repeated."""
        return await self._as_player("POST", "/api/me/claim", Me, body=ClaimRequest(username, password, list_replays))

    async def join(self, guest_refresh_token: str) -> SyncAnswer:
        """Take over the games of a guest, which is deleted; return the merged progress."""
        body = JoinRequest(guest_refresh_token)
        return await self._as_player("POST", "/api/me/join", SyncAnswer, body=body)

    async def logout(self) -> Ok:
        """End the session and forget its tokens."""
        body = LogoutRequest(self._session().refresh_token)
        done = await self._call("POST", "/api/auth/logout", Ok, body=body)
        self.tokens = None
        return done

    async def browser_login(self, username: str, password: str) -> BrowserSession:
        """Log in like the service's page; the client doesn't keep that session."""
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(self._url))
        page = Client(self._url, http=self._http, headers={**self._headers, "Origin": origin})
        return await page._call("POST", "/api/session", BrowserSession, body=BrowserLogin(username, password))

    async def sessions(self) -> list[Session]:
        """Return the player's sessions, last used first."""
        return await self._as_player("GET", "/api/sessions", list[Session])

    async def end_session(self, session_id: str) -> Ok:
        """End one of the player's sessions."""
        return await self._as_player("DELETE", f"/api/sessions/{session_id}", Ok)

    async def end_sessions(self) -> Ok:
        """End all sessions of the player, including this one, and forget the tokens."""
        done = await self._as_player("DELETE", "/api/sessions", Ok)
        self.tokens = None
        return done

    async def me(self) -> Me:
        """Return the player's profile."""
        return await self._as_player("GET", "/api/me", Me)

    async def change_password(self, current: str, new: str) -> TokenPair:
        """Replace the password, end all sessions, and begin a new one."""
        self.tokens = await self._as_player("PUT", "/api/me/password", TokenPair, body=PasswordChange(current, new))
        return self.tokens

    async def make_recovery_codes(self, current: str) -> RecoveryCodes:
        """Make new recovery codes, given the current password; the former codes stop working."""
        return await self._as_player("POST", "/api/me/recovery-codes", RecoveryCodes, body=CodesRequest(current))

    async def recovery_codes_left(self) -> CodesLeft:
        """Return the number of the player's unused recovery codes."""
        return await self._as_player("GET", "/api/me/recovery-codes", CodesLeft)

    async def recover(self, username: str, code: str, new: str) -> TokenPair:
        """Set a new password with a recovery code; the client is this player's from then on."""
        return await self._begin("/api/auth/recover", Recovery(username, code, new), TokenPair)

    async def reset(self, token: str, new: str) -> TokenPair:
        """Set a new password with the token of a reset link; the client is this player's from then on."""
        return await self._begin("/api/auth/reset", Reset(token, new), TokenPair)

    async def upload_avatar(self, image: bytes, media_type: str) -> Me:
        """Replace the player's avatar with this image."""
        return await self._as_player("PUT", "/api/me/avatar", Me, body=image, content_type=media_type)

    async def delete_avatar(self) -> Ok:
        """Delete the player's avatar."""
        return await self._as_player("DELETE", "/api/me/avatar", Ok)

    async def avatar(self, avatar_url: str) -> bytes:
        """Return the image at any player's `avatar_url`."""
        return await self._as_player("GET", avatar_url, bytes)

    async def export(self) -> bytes:
        """Return everything that is stored about the player, as one JSON document."""
        return await self._as_player("GET", "/api/me/export", bytes)

    async def delete_account(self) -> Ok:
        """Delete the account and forget the tokens."""
        done = await self._as_player("DELETE", "/api/account", Ok)
        self.tokens = None
        return done

    async def pull(self) -> SyncAnswer:
        """Return the player's stored progress."""
        return await self._as_player("GET", "/api/sync/pull", SyncAnswer)

    async def push(self, payload: Payload) -> SyncAnswer:
        """Merge this progress into the stored progress; return the result."""
        return await self._as_player("POST", "/api/sync/push", SyncAnswer, body=payload)

    async def count_games(self, *games: SentGame) -> GamesAnswer:
        """Count up to 100 finished games, each once by its id; the same games may be sent again."""
        return await self._as_player("POST", "/api/games", GamesAnswer, body=Games([*games]))

    async def events(self, *boards: str) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of a stream with these boards; the last is an EndEvent unless the connection is lost.

        A connection that is silent for 60 seconds counts as lost. After an end that allows it, open the next stream
        after `retry_seconds`.
        """
        query = urlencode([("board", board) for board in boards])
        response = await self._as_player("GET", f"/api/events?{query}", IResponse)
        async with aclosing(read_events(response, self._note_retry)) as events:
            async for event in events:
                yield event

    async def leaderboard(self) -> list[Entry]:
        """Return the best of the players who have opted in."""
        return await self._as_player("GET", "/api/leaderboard", list[Entry])

    async def own_entry(self) -> OwnEntry:
        """Return the player's own leaderboard entry, visible or not."""
        return await self._as_player("GET", "/api/leaderboard/opt-in", OwnEntry)

    async def opt_in(self, display_name: str) -> Ok:
        """Show the player on the leaderboard under this name."""
        return await self._as_player("POST", "/api/leaderboard/opt-in", Ok, body=OptIn(display_name))

    async def opt_out(self) -> Ok:
        """Hide the player from the leaderboard."""
        return await self._as_player("DELETE", "/api/leaderboard/opt-in", Ok)

    async def upload_replay(self, replay: bytes) -> str:
        """Store a replay byte for byte and return its id.

        A replay with a `game_id` may be sent again, and is stored once.
        """
        return (await self._as_player("POST", "/api/replays", Uploaded, body=msgspec.Raw(replay))).id

    @overload
    async def recent_replays(self, limit: int = ..., *, verified: bool = ...) -> list[Recent]: ...
    @overload
    async def recent_replays(self, limit: int = ..., *, verified: bool = ..., before: str) -> RecentReplays: ...

    async def recent_replays(
        self, limit: int = RECENT_DEFAULT, *, verified: bool = False, before: str | None = None
    ) -> list[Recent] | RecentReplays:
        """Return the newest replays of all players, or with `verified` the newest verified ones.

        With `before`, return a page of them: the first for an empty text, else the one after the page with this `next`.
        """
        path = f"/api/replays/recent?limit={limit}{'&verdict=verified' if verified else ''}"
        if before is None:
            return await self._call("GET", path, list[Recent])
        return await self._call("GET", f"{path}&before={before}", RecentReplays)

    async def player_replays(
        self, username: str, limit: int = RECENT_DEFAULT, before: str | None = None
    ) -> PlayerReplays:
        """Return a page of a player's listed replays, newest first; `before` is `next` of the page before."""
        more = f"&before={before}" if before is not None else ""
        return await self._call("GET", f"/api/players/{username}/replays?limit={limit}{more}", PlayerReplays)

    async def replay(self, replay_id: str) -> bytes:
        """Return a replay byte for byte as uploaded."""
        return await self._call("GET", f"/api/replays/{replay_id}", bytes)

    async def own_replays(self, limit: int = RECENT_DEFAULT, before: str | None = None) -> OwnReplays:
        """Return a page of the player's own replays, newest first; `before` is `next` of the page before."""
        more = f"&before={before}" if before is not None else ""
        return await self._as_player("GET", f"/api/me/replays?limit={limit}{more}", OwnReplays)

    async def set_listed(self, replay_id: str, listed: bool) -> Ok:
        """List one of the player's replays publicly, or unlist it."""
        return await self._as_player("PUT", f"/api/replays/{replay_id}/listed", Ok, body=Listed(listed))

    async def delete_replay(self, replay_id: str) -> Ok:
        """Delete one of the player's replays."""
        return await self._as_player("DELETE", f"/api/replays/{replay_id}", Ok)

    async def verdict(self, replay_id: str) -> VerdictAnswer:
        """Return the verdict on a replay."""
        return await self._call("GET", f"/api/replays/{replay_id}/verdict", VerdictAnswer)

    async def timeline(self, replay_id: str) -> Timeline:
        """Return each step of a verified replay."""
        return await self._call("GET", f"/api/replays/{replay_id}/timeline", Timeline)

    async def classic_board(self, draw_mode: str | None = None, **part: str | int) -> BoardPage:
        """Return a part of the board of mode Classic: `limit` and `after`, or `around="me"`."""
        return await self._board("verified", part if draw_mode is None else {"draw_mode": draw_mode, **part})

    async def daily_board(self, day: date, **part: str | int) -> BoardPage:
        """Return a part of the board of a day's deal."""
        return await self._board(f"daily/{day}", part)

    async def deal_board(self, seed: int, draw_mode: str, **part: str | int) -> BoardPage:
        """Return a part of the board of a deal."""
        return await self._board(f"deals/{seed}/{draw_mode}", part)

    async def _board(self, name: str, query: dict[str, str | int]) -> BoardPage:
        return await self._as_player("GET", f"/api/boards/{name}?{urlencode(query)}", BoardPage)

    async def deal(self, seed: int, draw_mode: str) -> DealtCards:
        """Return the cards of a deal."""
        return await self._call("GET", f"/api/deals/{seed}/{draw_mode}", DealtCards)

    async def daily_challenge(self) -> DailyChallenge:
        """Return the deal of the day and its goal."""
        return await self._call("GET", "/api/daily-challenge", DailyChallenge)

    async def report(self, batch: Batch) -> Receipt:
        """Report events of a game; a batch may be sent again, because each event is stored once."""
        return await self._call("POST", "/api/analytics", Receipt, body=batch)

    async def live(self) -> Alive:
        """Return the liveness of the process."""
        return await self._call("GET", "/api/health", Alive)

    async def ready(self) -> Ready:
        """Return the readiness of the service; raises ApiError if it isn't ready."""
        return await self._call("GET", "/api/health/ready", Ready)

    async def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        return await self._call("GET", "/api/openapi.json", dict[str, Any])
