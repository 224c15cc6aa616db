"""A player's device on Twisted: a client whose login and games survive crashes, lost messages and time offline.

docs/clients.md has an example.
"""

import fcntl
import os
from base64 import urlsafe_b64decode
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct, field
from twisted.internet.defer import Deferred, DeferredLock

from ..rules.accounts import AuthRequest, TokenPair
from ..rules.shapes import Ok
from ..rules.sync import Payload, SyncAnswer
from . import Client
from .journal import AddGame, FinishedGame, Journal, WonReplay, add_game, next_push, progress_with
from .transport import ApiError, P

Shape = TypeVar("Shape", bound=Struct)
T = TypeVar("T")

KNOWN_GAMES = 1_000  # how many ids of finished games a device remembers


class StoreInUse(Exception):
    """Another process has opened the store."""


class Store(Generic[Shape]):
    """One `value` in a file of a directory. `save` stores it, completely or not at all, also if the machine fails.

    A store belongs to one process at a time. `shape` must have a default for each field, which a new store begins with.
    """

    def __init__(self, directory: Path, shape: type[Shape]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = directory / "solisync.json"
        self._directory = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._directory)
            raise StoreInUse(f"another process uses {directory}") from None
        self.value = msgspec.json.decode(self._file.read_bytes(), type=shape) if self._file.exists() else shape()

    def save(self) -> None:
        """Store the value; the previous one stays if that fails. Blocks for as long as the disk needs."""
        new = self._file.with_suffix(".new")
        with open(new, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:  # it has tokens
            file.write(msgspec.json.encode(self.value))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._file)
        os.fsync(self._directory)

    def close(self) -> None:
        """Let another process open the store."""
        os.close(self._directory)


class Kept(Struct, kw_only=True):
    """What a device keeps; the journals are by the id of the player."""

    tokens: TokenPair | None = None
    player: str | None = None  # the id of the player, who finishes games even after the service has ended the session
    retry_key: str | None = None
    joining: str | None = None  # the refresh token of a guest whose games the player takes over
    journals: dict[str, Journal] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    uploaded: dict[str, str] = field(default_factory=dict)  # the newest replay ids, by game


class Device(Client):
    """A client of the service at `url` that keeps its state in `directory`, which belongs to one process at a time.

    Call `finish` for each finished game, and `sync` at the start, after a game, and again after an error: later by its
    `retry_after`. Each game then counts once, and each win is uploaded once. `add` adds a game to the progress.
    """

    def __init__(
        self,
        url: str,
        directory: Path,
        *,
        add: AddGame = add_game,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        **options: Any,
    ) -> None:
        super().__init__(url, **options)
        self._store = Store(directory, Kept)
        self._kept = self._store.value
        self._add = add
        self._now = now
        self._lock = DeferredLock()  # the player changes only while nothing is being sent
        super()._keep(self._kept.tokens, self._kept.retry_key)

    def close(self) -> None:
        """Let another process use the directory."""
        self._store.close()

    def _keep(self, tokens: TokenPair | None, retry_key: str | None) -> None:
        super()._keep(tokens, retry_key)
        self._kept.tokens, self._kept.retry_key = tokens, retry_key
        if tokens is not None:
            self._kept.player = _player_of(tokens)
        self._store.save()

    @property
    def signed_in(self) -> bool:
        """Whether the device has a session, as far as it knows."""
        return self.tokens is not None

    @property
    def journal(self) -> Journal:
        """The journal of the player. Raises ApiError `signed_out` if there is none."""
        player = self._kept.player or _player_of(self._session())
        return self._kept.journals.setdefault(player, Journal())

    def finish(self, game: FinishedGame, replay: dict[str, Any] | None = None) -> None:
        """Store a finished game, with the replay to upload if it is won. The same game again changes nothing."""
        if game.game_id in self._kept.finished:
            return
        self.journal.games.append(game)
        if replay is not None:
            body = msgspec.json.encode(replay | {"game_id": game.game_id}).decode()
            self.journal.wins.append(WonReplay(game.game_id, body))
        self._kept.finished = [*self._kept.finished, game.game_id][-KNOWN_GAMES:]
        self._store.save()

    def progress(self) -> Payload | None:
        """Return the player's progress with all unsent games; None if the device has never pulled."""
        return None if self.journal.base is None else progress_with(self.journal, self._add)

    def replay_of(self, game_id: str) -> str | None:
        """Return the id of a game's replay after its upload."""
        return self._kept.uploaded.get(game_id)

    async def sync(self) -> None:
        """Push all games, upload all wins, and store the newest progress. Raises like the other methods."""
        await self._alone(self._sync)

    async def _sync(self) -> None:
        if self._kept.joining is not None:
            await self._join()
        await self._count()
        await self._upload()

    async def _count(self) -> None:
        journal = self.journal
        self._answered(journal, await (self.pull() if journal.sent is None else self._push(journal)))
        while journal.games:
            journal.sent = next_push(journal, self._add, self._now())
            self._store.save()
            self._answered(journal, await self._push(journal))

    async def _push(self, journal: Journal) -> SyncAnswer:
        assert journal.sent is not None
        try:
            body = msgspec.Raw(journal.sent.body.encode())
            return await self._as_player("POST", "/api/sync/push", SyncAnswer, body=body)
        except ApiError as error:
            if (
                error.status == 400 and error.code is not None
            ):  # nothing was stored: the next attempt begins with a pull
                journal.sent = None
                self._store.save()
            raise

    def _answered(self, journal: Journal, answer: SyncAnswer) -> None:
        journal.answered(answer.merged)
        self._store.save()

    async def _upload(self) -> None:
        """Upload all wins; raise the first error at the end, so that a refused replay doesn't hold up the others."""
        journal, refused = self.journal, None
        for win in [*journal.wins]:
            try:
                replay_id = await self.upload_replay(win.body.encode())
            except ApiError as error:
                if error.status != 400 or error.code is None:
                    raise
                refused = refused or error
                continue
            journal.wins.remove(win)
            self._kept.uploaded[win.game_id] = replay_id
            for game_id in [*self._kept.uploaded][:-KNOWN_GAMES]:
                del self._kept.uploaded[game_id]
            self._store.save()
        if refused is not None:
            raise refused

    async def _exchange(self, spent: TokenPair) -> TokenPair:
        try:
            return await super()._exchange(spent)
        except ApiError as error:
            if error.code == "unauthorized" and self.tokens is spent:
                self._keep(None, None)  # the session is over; the games stay
            raise

    async def _begin(self, path: str, body: Struct, shape: type[P]) -> P:
        return await self._alone(lambda: super(Device, self)._begin(path, body, shape))

    async def join_as(self, username: str, password: str) -> None:
        """Log in as a player, who takes over the guest's games. After an error, call this again."""
        await self._alone(lambda: self._join_as(username, password))

    async def _join_as(self, username: str, password: str) -> None:
        if self._kept.joining is None:
            me = await self.me()
            if me.username == username.strip():  # it has succeeded before
                return
            await self._sync()  # the games of the guest reach the service
            body = AuthRequest(username, password)
            tokens = await self._call("POST", "/api/auth/login", TokenPair, body=body)
            while self._retry_key is not None:  # a refresh has no answer yet, and may have spent the guest's token
                await self.refresh()
            self._become(tokens)
        await self._join()

    def _become(self, player: TokenPair) -> None:
        """Change from the guest to a player, who gets the games that were finished during the requests."""
        guest = self._session()
        unsent, self._kept.joining = self._kept.journals.pop(_player_of(guest)), guest.refresh_token
        super()._keep(player, None)
        self._kept.player = _player_of(player)
        self.journal.games += unsent.games
        self.journal.wins += unsent.wins
        self._kept.tokens = player
        self._store.save()

    async def _join(self) -> None:
        assert self._kept.joining is not None
        journal = self.journal
        try:
            answer = await self.join(self._kept.joining)
        except ApiError as error:
            if error.code == "unauthorized":
                await self.me()  # raises if the error was about the player's session
            if error.code in ("guest_gone", "not_a_guest", "unauthorized"):
                self._kept.joining = None  # it would never succeed
                self._store.save()
            raise
        self._kept.joining = None
        if journal.sent is None:
            journal.base = answer.merged
        self._store.save()

    async def logout(self) -> Ok:
        """End the session; unsent games stay in the directory until the player's next login."""
        return await self._alone(self._logout)

    async def _logout(self) -> Ok:
        done = await super().logout()
        self._kept.player = None
        self._store.save()
        return done

    async def _alone(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        result: T = await self._lock.run(lambda: Deferred.fromCoroutine(work()))
        return result


def _player_of(tokens: TokenPair) -> str:
    claims = tokens.access_token.split(".")[1]
    return str(msgspec.json.decode(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"])
