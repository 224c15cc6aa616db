"""A driver without optional commands, which needs only Python: `python -m clients.conformance.reference`.

It shows how little the suite asks of a client, and tests the suite where no other client is installed.
"""

import base64
import contextlib
import copy
import http.client
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Lock, RLock, Thread
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

State = dict[str, Any]

COUNTED = ("games_played", "games_won", "games_lost", "lifetime_score", "draw_one_wins", "draw_three_wins")
NEVER = 2**64 - 1
SIGNED_OUT: State = {"player": "", "session": None, "retry_key": None, "joining": None}
NO_GAMES: State = {"latest": {}, "games": {}}


class Refused(Exception):
    """An answer that is no success; the code is `network` if it isn't the service's."""

    def __init__(self, status: int = 0, code: str = "network", retry_after: str = "") -> None:
        self.status, self.code = status, code
        self.retry_after = int(retry_after) if retry_after.isdigit() else None


def account_of(pair: State) -> str:
    """Return the id of the account whose tokens these are."""
    claims = pair["access_token"].split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"])


class Device:
    """A client whose state is in a file of a directory. Its methods are the commands of the suite."""

    def __init__(self, url: str, store: str, clock: float) -> None:
        self._address, self._file, self._ahead = urlsplit(url).netloc, Path(store) / "reference.json", clock
        self._state = json.loads(self._file.read_text()) if self._file.exists() else SIGNED_OUT | {"players": {}}
        self._changing, self._syncing, self._refreshing = Lock(), RLock(), Lock()
        self.signed_in = self._state["session"] is not None

    def _change(self, alter: Callable[[State], Any] = bool, **fields: Any) -> None:
        """Store a change, completely or not at all, before it counts."""
        with self._changing:
            state = copy.deepcopy(self._state)
            alter(state)
            state |= fields
            with (new := self._file.with_suffix(".new")).open("w") as file:
                json.dump(state, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._file)
            self._state = state

    def _send(self, method: str, path: str, body: Any = None, token: str | None = None) -> State:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        try:
            with contextlib.closing(http.client.HTTPConnection(self._address, timeout=45)) as connection:
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                content = json.loads(text) if (text := answer.read()) and answer.status == 200 else None
        except (OSError, http.client.HTTPException, ValueError):
            raise Refused from None
        if not isinstance(content, dict):
            raise Refused(
                answer.status, answer.headers.get("Error-Code", "network"), answer.headers.get("Retry-After", "")
            )
        return content

    def _ask(self, method: str, path: str, body: Any = None) -> State:
        """Send a request as the player, and once more with new tokens if the service refuses these."""
        for _ in range(2):
            if (session := self._state["session"]) is None:
                raise Refused(401, "signed_out")
            try:
                return self._send(method, path, body, session["access_token"])
            except Refused as refused:
                if refused.code != "unauthorized":
                    raise
                self.refresh(session)
        raise Refused(401, "network")

    def refresh(self, spent: State | None = None) -> None:
        """Exchange the tokens, unless that has happened. The key stays until there is an answer."""
        with self._refreshing:
            session = self._state["session"]
            if session is None or (spent and session != spent):
                return
            self._change(retry_key=self._state["retry_key"] or uuid4().hex)
            body = {"refresh_token": session["refresh_token"], "retry_key": self._state["retry_key"]}
            try:
                self._change(session=self._send("POST", "/api/auth/refresh", body), retry_key=None)
            except Refused as refused:
                if refused.code == "unauthorized":
                    self._change(session=None, retry_key=None)
                    raise Refused(401, "signed_out") from None
                raise

    def _become(self, pair: State, joining: State | None = None) -> None:
        """Sign in. The account gets the games from before, and all its games are sent again."""

        def alter(state: State) -> None:
            former = account_of(joining) if joining else ""
            mine = state["players"].setdefault(account_of(pair), copy.deepcopy(NO_GAMES))
            mine["games"] |= state["players"].pop(former, NO_GAMES)["games"]
            for entry in mine["games"].values():
                entry["due"] = True

        self._change(alter, player=account_of(pair), session=pair, retry_key=None, joining=joining)

    def register(self, username: str, password: str, do: str = "register") -> None:
        """Create an account."""
        with self._syncing:
            self._become(self._send("POST", f"/api/auth/{do}", {"username": username, "password": password}))

    def login(self, username: str, password: str) -> None:
        """Log in."""
        self.register(username, password, "login")

    def guest(self) -> None:
        """Begin as a guest."""
        with self._syncing:
            self._become(self._send("POST", "/api/auth/guest"))

    def claim(self, username: str, password: str) -> None:
        """Give the guest a name."""
        self._ask("POST", "/api/me/claim", {"username": username, "password": password})

    def join(self, username: str, password: str) -> None:
        """Let a player take over the guest's games. After an error, the next sync goes on."""
        with self._syncing:
            if self._state["joining"] is None and self.me()["username"] != username:
                self.sync()
                pair = self._send("POST", "/api/auth/login", {"username": username, "password": password})
                while self._state["retry_key"]:
                    self.refresh()  # otherwise the guest's token may be spent
                self._become(pair, self._state["session"])
            self.sync()

    def logout(self) -> None:
        """End the session; a guest is deleted."""
        with self._syncing:
            if self.me()["guest"]:
                self._ask("DELETE", "/api/account")
            else:
                self._ask("POST", "/api/auth/logout", {"refresh_token": self._state["session"]["refresh_token"]})
            self._change(**SIGNED_OUT)

    def me(self) -> State:
        """Return who is signed in."""
        me = self._ask("GET", "/api/me")
        return {"username": me["username"], "guest": me.get("guest", False)}

    def clock(self, seconds: float) -> None:
        """Set the clock."""
        self._ahead = seconds

    def finish(self, game: State) -> None:
        """Store a finished game once, with or without a session."""
        ended = (datetime.now(UTC) + timedelta(seconds=self._ahead)).isoformat()
        replay = game["replay"] and game.pop("replay") | {"game_id": game["game_id"]}
        sent = {"mode": "Classic", "ended_at": ended, "undone": False} | {**game, "replay": None}

        def alter(state: State) -> None:
            if not any(game["game_id"] in player["games"] for player in state["players"].values()):
                mine = state["players"].setdefault(state["player"], copy.deepcopy(NO_GAMES))
                mine["games"][game["game_id"]] = {"game": sent, "due": True, "counted": False, "replay": replay}

        self._change(alter)

    @property
    def _mine(self) -> State:
        return dict(self._state["players"].get(self._state["player"], NO_GAMES))

    def _take(self, answer: State, sent: list[str]) -> None:
        """Settle games by an answer. If the service has fewer games than before, send all again."""
        if "merged" not in answer:
            raise Refused
        stats = answer["merged"]["stats"]
        new = sum(result["counted"] for result in answer.get("games", []))

        def alter(state: State) -> None:
            mine = state["players"].setdefault(state["player"], copy.deepcopy(NO_GAMES))
            is_lost = stats["games_played"] - new < mine["latest"].get("games_played", 0)
            for number, entry in mine["games"].items():
                entry["due"] = number not in sent and (entry["due"] or is_lost)
                entry["counted"] = entry["counted"] or number in sent
            mine["latest"] = stats

        self._change(alter)

    def sync(self) -> None:
        """Join, send all games, upload all wins, or pull."""
        with self._syncing:
            if guest := self._state["joining"]:
                self._take(self._ask("POST", "/api/me/join", {"guest_refresh_token": guest["refresh_token"]}), [])
                self._change(joining=None)
            today = (datetime.now(UTC) + timedelta(seconds=self._ahead)).date().isoformat()
            is_new_day = today != self._mine.get("day")
            due = [entry["game"] for entry in self._mine["games"].values() if entry["due"] or is_new_day]
            if not due:
                self._take(self._ask("GET", "/api/sync/pull"), [])
            for first in range(0, len(due), 100):
                games = due[first : first + 100]
                answer = self._ask("POST", "/api/games", {"games": games})
                self._take(answer, [game["game_id"] for game in games])
            self._change(lambda state: state["players"][state["player"]].update(day=today))
            for number, entry in self._mine["games"].items():
                if entry["replay"]:
                    self._ask("POST", "/api/replays", entry["replay"])
                    self._change(partial(_uploaded, number))

    def totals(self) -> State:
        """Return the newest statistics with the games that are not in them."""
        latest, games = self._mine["latest"], self._mine["games"].values()
        new = [entry["game"] for entry in games if not entry["counted"]]
        won = [game for game in new if game["won"]]
        ones = sum(game["draw_mode"] == "DrawOne" for game in won)
        added = (len(new), len(won), len(new) - len(won), sum(game["score"] for game in won), ones, len(won) - ones)
        shown = {name: latest.get(name, 0) + more for name, more in zip(COUNTED, added, strict=True)}
        shown["best_single_score"] = max([latest.get("best_single_score", 0), *(game["score"] for game in won)])
        fastest = [latest.get("fastest_win_seconds", NEVER), *(game["seconds"] for game in won)]
        return shown | {"fastest_win_seconds": min(fastest)}


def _uploaded(number: str, state: State) -> None:
    state["players"][state["player"]]["games"][number]["replay"] = None


def answer(device: Device, number: int, do: str, **fields: Any) -> None:
    """Carry out a command, and write its answer."""
    told: State
    try:
        told = {"ok": getattr(device, do)(**fields) or {}}
    except Refused as refused:
        told = {"error": {"code": refused.code, "status": refused.status, "retry_after": refused.retry_after}}
    os.write(1, f"{json.dumps({'id': number} | told)}\n".encode())


def main() -> None:
    """Read commands until the end of the input."""
    for line in sys.stdin:
        command = json.loads(line)
        number, do = command.pop("id"), command.pop("do")
        if do == "open":
            device = Device(**command)
            os.write(1, json.dumps({"id": number, "ok": {"signed_in": device.signed_in, "can": []}}).encode() + b"\n")
        else:
            Thread(target=answer, args=(device, number, do), kwargs=command, daemon=True).start()


if __name__ == "__main__":
    main()
