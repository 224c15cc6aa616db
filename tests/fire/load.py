"""Load from threads: steady requests, and players who remember every answer."""

import base64
import hashlib
import http.client
import itertools
import json
import random
import threading
import time
import uuid
from collections import Counter
from datetime import UTC, datetime

from tests.harness.constants import PASSWORD
from tests.harness.http_requests import Connection
from tests.harness.payloads import progress_of

REFUSED = "refused"  # the connection was: nothing was sent, so nothing was lost


class Steady:
    """A load of `rate` requests a second from `clients` threads: half on kept connections, half on one for each.

    While the port is `closing`, a connection that is reset before any byte was answered is made once more, as every
    HTTP client does: the kernel may have made it after the service had accepted its last one.
    """

    def __init__(self, port, rate=200, clients=20, bearers=(), *, closing=False):
        self.outcomes = Counter()
        self.cut = []
        self.made_again = 0
        self._closing = closing
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(port, clients / rate, number % 2 == 0, bearers))
            for number in range(clients)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, port, pause, keep, bearers):
        connection = Connection(port)
        due = time.monotonic() + random.random() * pause
        while not self._over.wait(max(0, due - time.monotonic())):
            due += pause
            try:
                if bearers:
                    self.outcomes[connection.ask("GET", "/api/sync/pull", bearer=random.choice(bearers)).status] += 1
                else:
                    self.outcomes[connection.ask("GET", "/api/daily-challenge").status] += 1
            except ConnectionRefusedError:
                self.outcomes[REFUSED] += 1
            except (OSError, http.client.HTTPException) as error:
                if self._closing and connection.fresh and type(error) is ConnectionResetError:
                    self.made_again += 1
                    due = time.monotonic()
                else:
                    self.cut.append(repr(error))
            if not keep:
                connection.close()
        connection.close()

    def stop(self):
        """End the load; return the number of requests by status."""
        self._over.set()
        for thread in self._threads:
            thread.join(40)
        return dict(self.outcomes)


class Player:
    """A player who pushes, refreshes, uploads and reports at random, and remembers what was acknowledged.

    `run` goes on until `over` is set, with a `pause` after each request. An answer that never came leaves the
    outcome open: such a write may be stored or not, but not twice.
    """

    numbers = itertools.count(1)

    def __init__(self, ports, over, seed, *, pause=0.0):
        self.pause = pause
        self.ports = ports  # called for every request: the service moves, and there may be several
        self.over = over
        self.chance = random.Random(seed)
        self.name = f"player_{uuid.uuid4().hex[:16]}"
        self.unlocked, self.replays, self.events = set(), {}, set()
        self.maybe_replays = {}  # by final_score: those without an answer
        self.avatars = [None]  # the last acknowledged one, and those tried since
        self.token = self.access = self.spent = None
        self.user_id = None
        self.acknowledged = 0
        self.wrong = []
        self.statuses = Counter()

    def ask(self, method, path, body=None, bearer=None, headers=None):
        """Return status and content, or (0, b"") when no complete answer came."""
        connection = Connection(self.chance.choice(self.ports()))
        try:
            answer = connection.ask(method, path, body, bearer=bearer, headers=headers)
        except (OSError, http.client.HTTPException):
            self.statuses["no answer"] += 1
            self.over.wait(0.02)
            return 0, b""
        finally:
            connection.close()
        status, content = answer.status, answer.content
        self.statuses[status] += 1
        if self.pause:
            self.over.wait(self.pause)
        if status not in (200, 401, 500, 503):
            self.wrong.append((method, path, status, content[:200]))
        if status == 200:
            self.acknowledged += 1
        return status, content

    def enter(self):
        """Register, or log in when the tokens are gone."""
        credentials = {"username": self.name, "password": PASSWORD}
        status, content = self.ask("POST", "/api/auth/login" if self.user_id else "/api/auth/register", credentials)
        if status == 409:
            self.user_id = "taken"
        if status == 200:
            self._keep(content)

    def _keep(self, content):
        pair = json.loads(content)
        self.token, self.access = pair["refresh_token"], pair["access_token"]
        claims = self.access.split(".")[1]
        self.user_id = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]

    def run(self, seconds=float("inf")):
        """Play until `over` is set, or for this number of seconds."""
        end = time.monotonic() + seconds
        kinds = [self.push] * 4 + [self.refresh, self.replay, self.replay, self.avatar, self.report]
        while not self.over.is_set() and time.monotonic() < end:
            if self.token is None:
                self.enter()
            else:
                self.chance.choice(kinds)()

    def leave(self):
        """Delete the account."""
        if self.access is not None:
            self.ask("DELETE", "/api/account", None, self.access)

    def push(self):
        """Unlock one more card back."""
        number = next(self.numbers)
        if (
            self.ask("POST", "/api/sync/push", progress_of(progress__unlocked_card_backs=[number]), self.access)[0]
            == 200
        ):
            self.unlocked.add(number)

    def refresh(self):
        """Rotate the tokens; the old one must be spent from then on, whatever happens."""
        if self.spent is not None:
            status, _ = self.ask("POST", "/api/auth/refresh", {"refresh_token": self.spent})
            if status == 200:
                self.wrong.append("a spent refresh token was accepted")
        token, self.token = self.token, None
        status, content = self.ask("POST", "/api/auth/refresh", {"refresh_token": token})
        if status == 200:
            self.spent = token
            self._keep(content)
        elif status in (0, 500):  # spent or not: once more, and if that is accepted it must have been the first time
            status, content = self.ask("POST", "/api/auth/refresh", {"refresh_token": token})
            if status == 200:
                self.spent = token
                self._keep(content)

    def replay(self):
        """Upload a replay with unique bytes."""
        number = next(self.numbers)
        filler = hashlib.sha256(str(number).encode()).hexdigest() * self.chance.randint(1, 60)
        text = (
            '{ "mode":"Zen", "draw_mode":"DrawOne", "time_seconds":9.50, "recorded_at":"2026-11-20",'
            f' "final_score":{number}, "moves":"{filler}"}}'
        ).encode()
        status, content = self.ask("POST", "/api/replays", text, self.access)
        if status == 200:
            self.replays[json.loads(content)["id"]] = text
        else:
            self.maybe_replays[number] = text

    def avatar(self):
        """Replace the avatar."""
        image = b"\x89PNG\r\n\x1a\n" + self.chance.randbytes(self.chance.randint(100, 60_000))
        self.avatars.append(image)
        if self.ask("PUT", "/api/me/avatar", image, self.access, {"Content-Type": "image/png"})[0] == 200:
            self.avatars = [image]

    def report(self):
        """Report a few analytics events."""
        events = [str(uuid.UUID(bytes=self.chance.randbytes(16), version=4)) for _ in range(5)]
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        batch = [{"id": each, "event_type": "won", "client_time": now} for each in events]
        status, _ = self.ask("POST", "/api/analytics", {"session_id": "fire", "events": batch})
        if status == 200:
            self.events.update(events)

    def check(self, port, sql):
        """Raise AssertionError unless every acknowledged write is stored completely, and exactly once."""
        assert not self.wrong, self.wrong
        if self.access is None:
            return
        connection = Connection(port)
        pulled = connection.ask("GET", "/api/sync/pull", bearer=self.access)
        assert pulled.status == 200
        assert self.unlocked <= set(pulled.json["merged"]["progress"]["unlocked_card_backs"])
        for number, text in self.replays.items():
            fetched = connection.ask("GET", f"/api/replays/{number}")
            assert (fetched.status, fetched.content) == (200, text)
        stored = sql("SELECT final_score::float8 FROM replays WHERE user_id = %s", (self.user_id,))
        scores = Counter(int(score) for (score,) in stored)
        assert not [score for score, times in scores.items() if times > 1]
        assert set(scores) <= {json.loads(text)["final_score"] for text in self.replays.values()} | set(
            self.maybe_replays
        )
        avatar = connection.ask("GET", f"/avatars/{self.user_id}.png", bearer=self.access)
        assert (avatar.content if avatar.status == 200 else None) in self.avatars
        ids = list(self.events)
        assert sql("SELECT count(*) FROM analytics_events WHERE id = ANY(%s::uuid[])", (ids,)) == [(len(ids),)]
        connection.close()


class Crowd:
    """Players in separate threads, on the service at `ports`."""

    def __init__(self, ports, count, seed):
        self.over = threading.Event()
        self.players = [Player(ports, self.over, f"{seed}.{number}") for number in range(count)]
        self.threads = [threading.Thread(target=player.run) for player in self.players]
        for thread in self.threads:
            thread.start()

    def stop(self):
        """End the players; return the number of acknowledged writes."""
        self.over.set()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()
        return sum(player.acknowledged for player in self.players)

    @property
    def statuses(self):
        """Return the number of requests by status."""
        return dict(sum((player.statuses for player in self.players), Counter()))
