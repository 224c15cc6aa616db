"""kill -9 of PostgreSQL while devices push and pull: some games may not be counted, but none is counted twice."""

import os
import random
import signal
import threading

from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.fire.test_kills import is_back
from tests.harness.concurrency import wait_for
from tests.harness.constants import PASSWORD
from tests.harness.devices import Device, Truth, counts_in, payload_of
from tests.harness.http_requests import Connection
from tests.harness.processes import postmaster
from tests.harness.service import ready

GAME = {"won": True, "score": 101, "seconds": 100}
KILLS = 12


class Player(threading.Thread):
    """A device that plays, pushes and pulls until it is stopped, and repeats requests without an answer."""

    def __init__(self, port, token, seed):
        super().__init__()
        self.connection, self.token = Connection(port), token
        self.device, self.truth, self.chance = Device(), Truth(), random.Random(seed)
        self.over, self.unanswered = threading.Event(), 0

    def ask(self, method, path, body=None):
        """Return the counts of the answer, or None if there was no answer or a failure."""
        try:
            answer = self.connection.ask(method, path, body, bearer=self.token)
        except Exception:
            answer = None
        if answer is None or answer.status != 200:
            self.unanswered += 1
            return None
        return counts_in(answer.json)

    def push(self):
        answer = self.ask("POST", "/api/sync/push", payload_of(self.device.pushes()))
        if answer is not None:
            self.device.take_maximum(answer)
        return answer

    def run(self):
        while (pulled := self.ask("GET", "/api/sync/pull")) is None:
            pass
        self.device.take_maximum(pulled)
        while not self.over.wait(0.005):
            if self.chance.random() < 0.7:
                self.device.play(GAME)
                self.truth.play(GAME)
                self.push()
            else:
                self.ask("GET", "/api/sync/pull")
        while self.push() is None:
            pass


async def test_killing_the_database_counts_no_game_twice(serve, reactor, durable, figure):
    """Four devices of one player end with at most the games that were played, and at least those of each device."""
    chance, process = random.Random(20261122), await serve(durable.dsn)
    first = await process.player()
    players = []
    for seed in range(4):
        client = process.client()
        await client.login((await first.me()).username, PASSWORD)
        players.append(Player(process.port, client.tokens.access_token, seed))
    for player in players:
        player.start()
    try:
        for _ in range(KILLS):
            await deferLater(reactor, chance.uniform(0.3, 0.8))
            old = postmaster(durable.data_dir)
            os.kill(old, signal.SIGKILL)
            await deferToThread(wait_for, lambda old=old: is_back(durable, old))
        await ready(reactor, process.client())
    finally:
        for player in players:
            player.over.set()
    for player in players:
        await deferToThread(player.join)
    played = sum(player.truth.counts.games_played for player in players)
    counted = (await first.pull()).merged.stats.games_played
    lost = sum(player.unanswered for player in players)
    figure(f"{KILLS} kill -9 of PostgreSQL, {lost} requests without an answer: {counted} of {played} games counted")
    assert max(player.device.counts.games_played for player in players) <= counted <= played
    assert process.stop() == 0
