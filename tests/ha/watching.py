"""Observers that run during a fault: of promotions, of readiness, and of spent refresh tokens."""

import threading
import time
from bisect import bisect
from uuid import uuid4

import psycopg2

from tests.ha.cluster import NODES, READ_ONLY
from tests.harness.constants import PASSWORD
from tests.harness.http_requests import ask, refresh
from tests.harness.postgres import connect

SOON_SECONDS = 1.0  # readiness may be sooner to find a new primary than the players who wait for a connection


class Promotions:
    """A thread that notes when a server that took no writes takes them."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._ended = threading.Event()
        self.primaries = {}  # when each server was first seen to take writes, by its number, since it last didn't
        self._threads = [threading.Thread(target=self._watch, args=(number,), daemon=True) for number in NODES]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()

    def _watch(self, number):
        connection = None
        while not self._ended.wait(0.03):
            try:
                connection = connection or connect(self._cluster.dsn(number, user="postgres", dbname="postgres"))
                with connection.cursor() as cursor:
                    cursor.execute(READ_ONLY)
                    takes_writes = cursor.fetchall() == [(False,)]
            except psycopg2.Error:
                connection, takes_writes = None, False
            if takes_writes:
                self.primaries.setdefault(number, time.monotonic())
            else:
                self.primaries.pop(number, None)

    def since(self, moment):
        """Return when a server began to take writes after this moment, or None."""
        return min((when for when in self.primaries.copy().values() if when > moment), default=None)


class Readiness:
    """A thread that requests the readiness of a node five times a second."""

    def __init__(self, node, players):
        self._node = node
        self._players = players
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.answers = []  # when each was sent for and when it came, and its status

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join(10)

    def _watch(self):
        while not self._ended.wait(0.2):
            sent = time.monotonic()
            status, *_ = ask(self._node, "GET", "/health/ready")
            self.answers.append((sent, time.monotonic(), status))

    @property
    def slowest(self):
        """Return the longest time of an answer."""
        return max(came - sent for sent, came, _ in self.answers)

    @property
    def longest_lie(self):
        """Return how long a 200 came, at most, without an acknowledged write of a player before or soon after."""
        written, longest = sorted(self._players.written), 0.0
        for _, came, status in self.answers:
            index = bisect(written, came)
            soon = index < len(written) and written[index] - came < SOON_SECONDS
            if status == 200 and index and not soon:
                longest = max(longest, came - written[index - 1])
        return longest

    def ready_after(self, moment):
        """Return the time of the first 200 to a request sent after this moment."""
        return next((came for sent, came, status in self.answers if sent > moment and status == 200), None)


class Refreshing:
    """A player who refreshes in a thread all the time, and remembers which tokens are spent."""

    def __init__(self, node):
        self._node = node
        self._name = f"r{uuid4().hex[:16]}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)
        self.spent = []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join(15)

    def _refresh(self):
        token = self._enter("register")
        while token is not None and not self._ended.wait(0.1):
            status, answer, _ = refresh(self._node, token)
            if status == 200:
                self.spent.append(token)
                token = answer["refresh_token"]
            elif status == 401:  # spent by a request that was answered with 500
                self.spent.append(token)
                token = self._enter("login")

    def _enter(self, how):
        while not self._ended.is_set():
            body = {"username": self._name, "password": PASSWORD}
            status, answer, _ = ask(self._node, "POST", f"/api/auth/{how}", body)
            if status == 200:
                return answer["refresh_token"]
            how = "login" if status in (409, 400) else how
            self._ended.wait(0.2)
        return None

    def accepted_again(self):
        """Return how many spent tokens are accepted once more."""
        return sum(refresh(self._node, token)[0] != 401 for token in self.spent)
