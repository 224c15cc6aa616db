"""Workloads: each makes an exchange, a generator that yields the bytes of a request and receives the answer's body.

    >>> exchange = me(crowd)
    >>> request = next(exchange)

Rate limits stay on. So requests to limited routes use a new client address in X-Forwarded-For every few requests, as if
many players came through a proxy.
"""

import json
import os
import random
import re
from collections import deque
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID

from solisync.rules.stock import replay, won_game

from .world import PASSWORD, Player, World

PLAYERS = 10_000  # the most players who send requests, chosen at random
EVENTS = 50  # in an analytics request
HITS = 4  # requests from one address: below every rate limit

_GAMES_PLAYED = re.compile(rb'"games_played":\d+')

Exchange = Generator[bytes, bytes, None]


class Crowd:
    """The players who send requests, in turn, and the contents of their requests."""

    def __init__(self, world: World) -> None:
        chance = random.Random(7)
        numbers = chance.sample(world.stock.numbers, min(PLAYERS, world.players))
        self.players = deque(Player(number) for number in numbers)
        self.replays = deque(world.replay_id(chance.randrange(world.replays)).encode() for _ in range(PLAYERS))
        self._requests = count()
        self.progress = {number: world.stock.player(number).progress.encode() for number in numbers}
        self.replay = replay("upload", world.stock.now, won_game(0))

    def next(self) -> Player:
        """Return the next player."""
        self.players.rotate()
        return self.players[0]

    def address(self) -> bytes:
        """Return a client address with fewer than HITS requests so far, and count another one."""
        number = next(self._requests) // HITS
        return b"10.%d.%d.%d" % (number >> 16 & 255, number >> 8 & 255, number & 255)


def _request(line: bytes, *headers: bytes, body: bytes | None = None) -> bytes:
    lines = [line + b" HTTP/1.1", b"Host: bench.example", *headers]
    if body is None:
        return b"\r\n".join([*lines, b"\r\n"])
    return b"\r\n".join([*lines, b"Content-Type: application/json", b"Content-Length: %d" % len(body), b"", body])


def _bearer(player: Player) -> bytes:
    return b"Authorization: Bearer " + player.access


def _from(crowd: Crowd) -> bytes:
    return b"X-Forwarded-For: " + crowd.address()


def health(crowd: Crowd) -> Exchange:
    yield _request(b"GET /health")


def me(crowd: Crowd) -> Exchange:
    yield _request(b"GET /api/me", _bearer(crowd.next()))


def pull(crowd: Crowd) -> Exchange:
    yield _request(b"GET /api/sync/pull", _bearer(crowd.next()))


def push(crowd: Crowd) -> Exchange:
    player = crowd.next()
    played = b'"games_played":%d' % random.randrange(100_000, 104_000)  # more than any player of the stock
    body = _GAMES_PLAYED.sub(played, crowd.progress[player.number], count=1)
    yield _request(b"POST /api/sync/push", _bearer(player), body=body)


def finished_game(number: int) -> dict[str, Any]:
    """A finished game without a seed; the number decides its id, and whether it was won."""
    return {
        "game_id": str(UUID(int=number)),
        "mode": "Classic",
        "draw_mode": "DrawOne",
        "won": number % 2 == 0,
        "score": 605,
        "seconds": 252,
        "ended_at": datetime.now(UTC).isoformat(),
        "undone": False,
    }


def games(crowd: Crowd, number: int = 1) -> Exchange:
    """New finished games."""
    body = {"games": [finished_game(random.getrandbits(128)) for _ in range(number)]}
    yield _request(b"POST /api/games", _bearer(crowd.next()), body=json.dumps(body).encode())


def games_100(crowd: Crowd) -> Exchange:
    yield from games(crowd, 100)


def refresh(crowd: Crowd) -> Exchange:
    player = crowd.players.popleft()  # another exchange must not use the token until this one has replaced it
    body = json.dumps({"refresh_token": player.refresh}).encode()
    answer = yield _request(b"POST /api/auth/refresh", _from(crowd), body=body)
    pair = json.loads(answer)
    if "refresh_token" in pair:  # the previous access token no longer names a session
        player.refresh, player.access = pair["refresh_token"], pair["access_token"].encode()
    crowd.players.append(player)


def upload(crowd: Crowd) -> Exchange:
    yield _request(b"POST /api/replays", _bearer(crowd.next()), body=crowd.replay)


def fetch(crowd: Crowd) -> Exchange:
    crowd.replays.rotate()
    yield _request(b"GET /api/replays/" + crowd.replays[0])


def recent(crowd: Crowd) -> Exchange:
    yield _request(b"GET /api/replays/recent")


def leaderboard(crowd: Crowd) -> Exchange:
    yield _request(b"GET /api/leaderboard", _bearer(crowd.next()))


def sessions(crowd: Crowd) -> Exchange:
    yield _request(b"GET /api/sessions", _bearer(crowd.next()))


def verdict(crowd: Crowd) -> Exchange:
    crowd.replays.rotate()
    yield _request(b"GET /api/replays/" + crowd.replays[0] + b"/verdict")


def board(crowd: Crowd) -> Exchange:
    yield _request(b"GET /api/boards/verified", _bearer(crowd.next()))


def challenge(crowd: Crowd) -> Exchange:
    yield _request(b"GET /api/daily-challenge")


def analytics(crowd: Crowd) -> Exchange:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    ids = os.urandom(16 * EVENTS).hex()
    events = ",".join(
        f'{{"id":"{ids[at : at + 32]}","event_type":"game_won","payload":{{"score":4000,"seconds":95,"undo":3}},'
        f'"client_time":"{now}"}}'
        for at in range(0, len(ids), 32)
    )
    body = f'{{"session_id":"bench","user_id":"{crowd.next().username}","events":[{events}]}}'.encode()
    yield _request(b"POST /api/analytics", _from(crowd), body=body)


def login(crowd: Crowd) -> Exchange:
    body = json.dumps({"username": crowd.next().username, "password": PASSWORD}).encode()
    yield _request(b"POST /api/auth/login", _from(crowd), body=body)


_MIX = {login: 1, refresh: 2, pull: 10, push: 10, upload: 1, fetch: 1, recent: 5, leaderboard: 5, me: 5}


def mix(crowd: Crowd) -> Exchange:
    """A request of a player's session, chosen at random in the proportions of _MIX."""
    (workload,) = random.choices(list(_MIX), list(_MIX.values()))
    yield from workload(crowd)


WORKLOADS: dict[str, Callable[[Crowd], Exchange]] = {
    each.__name__: each
    for each in (
        health, me, pull, push, games, games_100, refresh, sessions, upload, fetch, verdict, board, recent, leaderboard,
        challenge, analytics, login, mix,
    )
}  # fmt: skip
