"""kill -9 of PostgreSQL and of the service's workers while devices send games by their ids: every game counts once."""

import os
import random
import signal
import threading

from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.fire.test_kills import is_back
from tests.harness.concurrency import wait_for
from tests.harness.games import game
from tests.harness.http_requests import Connection
from tests.harness.processes import postmaster
from tests.harness.service import ready

KILLS = 12


class Sender(threading.Thread):
    """A device that finishes games and sends all that aren't settled, in any order, until it is stopped."""

    def __init__(self, port, token, seed):
        super().__init__()
        self.connection, self.token, self.chance = Connection(port), token, random.Random(seed)
        self.over, self.played, self.unsettled, self.unanswered = threading.Event(), [], {}, 0

    def send(self):
        """Send up to a hundred games, among them settled ones; settle those that the answer has."""
        games = [*self.unsettled.values()][:80] + self.chance.sample(self.played, min(len(self.played), 5))
        self.chance.shuffle(games)
        try:
            answer = self.connection.ask("POST", "/api/games", {"games": games}, bearer=self.token)
        except Exception:
            answer = None
        if answer is None or answer.status != 200:
            self.unanswered += 1
            return
        for each in answer.json["games"]:
            assert each["error"] is None
            self.unsettled.pop(each["game_id"], None)

    def run(self):
        while not self.over.wait(1.1):  # at most 60 requests a minute
            for _ in range(self.chance.randrange(4)):
                finished = game(won=self.chance.random() < 0.6, score=self.chance.randrange(700))
                self.played.append(finished)
                self.unsettled[finished["game_id"]] = finished
            if self.played:
                self.send()
        while self.unsettled:
            self.over.wait(1.1)
            self.send()


async def test_killing_the_database_loses_and_doubles_no_game(serve, reactor, durable, figure):
    """Sixteen players, each with one device."""
    chance, process = random.Random(20261128), await serve(durable.dsn)
    clients = [await process.player(f"player_{number}") for number in range(16)]
    senders = [Sender(process.port, client.tokens.access_token, seed) for seed, client in enumerate(clients)]
    for sender in senders:
        sender.start()
    try:
        for _ in range(KILLS):
            await deferLater(reactor, chance.uniform(0.5, 2))
            old = postmaster(durable.data_dir)
            os.kill(old, signal.SIGKILL)
            await deferToThread(wait_for, lambda old=old: is_back(durable, old))
        await ready(reactor, process.client())
    finally:
        for sender in senders:
            sender.over.set()
    for sender in senders:
        await deferToThread(sender.join)
    for client, sender in zip(clients, senders, strict=True):
        stats = (await client.pull()).merged.stats
        won = [each for each in sender.played if each["won"]]
        truth = (len(sender.played), len(won), sum(each["score"] for each in won))
        assert (stats.games_played, stats.games_won, stats.lifetime_score) == truth
    played, lost = sum(len(each.played) for each in senders), sum(each.unanswered for each in senders)
    figure(f"{KILLS} kill -9 of PostgreSQL, {lost} requests without an answer: {played} of {played} games counted once")
    assert process.stop() == 0


async def test_account_at_its_bounds_is_erased(serve, reactor, durable, figure):
    """An account with 200,000 games: what a request costs, and its deletion."""
    process = await serve(durable.dsn)
    client = await process.player("ann")
    await deferToThread(process.sql, FILL)
    begin = reactor.seconds()
    body = {"games": [game() for _ in range(100)]}
    answer = await process.ask("POST", "/api/games", body=body, bearer=client.tokens.access_token)
    assert answer.status == 200
    sent = reactor.seconds() - begin
    ((left,),) = await deferToThread(process.sql, "SELECT count(*) FROM games")
    assert left == 200_000
    begin = reactor.seconds()
    exported = await client.export()
    assert exported.count(b'"counted_at"') == 200_000
    export = reactor.seconds() - begin
    begin = reactor.seconds()
    await client.delete_account()
    deleted = reactor.seconds() - begin
    assert await deferToThread(process.sql, "SELECT count(*) FROM games") == [(0,)]
    figure(f"200,000 games: 100 more {sent * 1e3:.0f} ms, export {export:.1f} s, deletion {deleted:.1f} s")
    assert process.stop() == 0


FILL = """
    INSERT INTO games (user_id, game_id, ended_at, counted_at, mode, draw_mode, won, score, seconds, xp)
    SELECT id, gen_random_uuid(), now() - n * interval '10 minutes',
        now() - interval '1 day' - n * interval '9 minutes',
        'Classic', 'DrawOne', n % 2 = 0, 600, 200, 75
    FROM users, generate_series(1, 200000) AS n;
    INSERT INTO game_memory (user_id, games) SELECT id, 200000 FROM users;
    ANALYZE games
"""
