"""Players who keep writing during faults of the database, and remember every acknowledged write."""

import contextlib
import itertools
import json
import threading
import time
from collections import Counter
from uuid import uuid4

from twisted.internet.defer import Deferred

from tests.harness.concurrency import at_once
from tests.harness.constants import PASSWORD
from tests.harness.http_requests import ask
from tests.harness.payloads import progress_of
from tests.harness.postgres import run_sql

TEXTS = {500: "internal server error", 503: "service unavailable"}
ANSWER_SECONDS = 10.0
KINDS = ("unlocked_backgrounds", "unlocked_card_backs")  # an account has at most 1,000 of each


class Players:
    """Players who push a new unlock at every turn, sometimes upload a replay, and pull."""

    def __init__(self, process, count=6):
        self._process = process
        self._name = f"p{uuid4().hex[:16]}"
        self._count = count
        self._stopped = threading.Event()
        self._numbers = itertools.count(1)
        self.statuses = Counter()
        self.written = []  # when each acknowledged write was acknowledged
        self.slowest = 0.0
        self.wrong = []
        self.unlocked = {}  # acknowledged unlocks, by access token
        self.replays = {}  # acknowledged ones, by id

    @contextlib.asynccontextmanager
    async def playing(self):
        """Register all players; let them play in threads while the block runs."""
        await at_once(self._count, self._register, range(self._count))
        running = Deferred.fromCoroutine(at_once(self._count, self._play, list(self.unlocked)))
        try:
            yield self
        finally:
            self._stopped.set()
            await running

    def _register(self, number):
        body = {"username": f"{self._name}_{number}", "password": PASSWORD}
        status, pair, _ = ask(self._process, "POST", "/api/auth/register", body)
        assert status == 200
        self.unlocked[pair["access_token"]] = set()

    def _play(self, token):
        while not self._stopped.is_set():
            number = next(self._numbers)
            if number % 3 == 0:
                body = {"mode": "Zen", "draw_mode": "DrawOne", "final_score": number, "time_seconds": 1}
                body |= {"recorded_at": "2026-01-01", "moves": [self._name, number]}
                answer = self._ask("POST", "/api/replays", body, token)
                if answer is not None:
                    self.replays[answer["id"]] = body
            elif number % 7 == 0:
                self._ask("GET", "/api/sync/pull", None, token)
            else:
                change = progress_of(**{f"progress__{KINDS[number % 2]}": [number]})
                if self._ask("POST", "/api/sync/push", change, token):
                    self.unlocked[token].add(number)

    def _ask(self, method, path, body, token):
        began = time.monotonic()
        try:
            status, answer, headers = ask(self._process, method, path, body, bearer=token)
        except Exception as error:  # the service went away, or sent something else than JSON
            self.wrong.append(repr(error))
            self._stopped.wait(0.1)
            return None
        self.slowest = max(self.slowest, time.monotonic() - began)
        self.statuses[status] += 1
        if status == 200:
            if method == "POST":
                self.written.append(time.monotonic())
            self._stopped.wait(0.02)
            return answer
        says_when = int(headers.get("retry-after", 0)) >= 1
        if answer != {"error": TEXTS.get(status)} or says_when != (status == 503):
            self.wrong.append((status, answer, headers))
        if headers["content-type"] != "application/json":
            self.wrong.append((status, headers["content-type"]))
        self._stopped.wait(0.02)
        return None

    def wrote_after(self, moment):
        """Return when the first write since `moment` was acknowledged, or None."""
        return next((when for when in list(self.written) if when > moment), None)

    def check(self, dsn):
        """Check that every answer was right and in time. Each acknowledged write is stored once, and complete."""
        assert self.wrong == [], self.wrong[:3]
        assert self.slowest < ANSWER_SECONDS
        for token, acknowledged in self.unlocked.items():
            status, pulled, _ = ask(self._process, "GET", "/api/sync/pull", bearer=token)
            assert status == 200
            assert acknowledged <= set().union(*(pulled["merged"]["progress"][kind] for kind in KINDS))
        stored = run_sql(dsn, "SELECT id::text, body FROM replays")
        texts = Counter(document for _, document in stored)
        documents = dict(stored)
        for replay_id, body in self.replays.items():
            assert documents[replay_id] == json.dumps(body)
            assert texts[json.dumps(body)] == 1

    def __str__(self):
        writes = sum(map(len, self.unlocked.values())) + len(self.replays)
        return f"{writes} acknowledged writes, answers {dict(self.statuses)}, slowest {self.slowest:.2f} s"
