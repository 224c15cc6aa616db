"""One player's writes wait for each other, and for nobody else's (docs/security.md "Bounds")."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from solisync.errors import TooMany
from solisync.web.handler_limits import WAITING, OneAtATime
from tests.harness.concurrency import gather, until
from tests.harness.payloads import IMAGES, progress_of, replay
from tests.harness.postgres import connect, lock_waiters
from tests.web.calls import push

POOL = 8


class Work:
    """Pieces of work that end when they are told to."""

    def __init__(self):
        self.clock = Clock()
        self.refused = 0
        self.queue = OneAtATime(reactor=self.clock, on_refusal=self._refuse)
        self.running = {}
        self.begun = []

    def ask(self, name, key="ann"):
        return Deferred.fromCoroutine(self.queue.run(key, self._work, name=name))

    def _refuse(self):
        self.refused += 1

    async def _work(self, name):
        self.begun.append(name)
        self.running[name] = Deferred()
        return await self.running[name]

    def end(self, name):
        self.running[name].callback(name)
        self.clock.advance(0)


@pytest.fixture
def work():
    return Work()


def test_work_of_one_key_is_done_in_order(work):
    """The next begins when the one before has ended, also when that failed; other keys don't wait."""
    results = [work.ask(name) for name in ("first", "second", "third")]
    other = work.ask("other", key="bob")
    assert work.begun == ["first", "other"]
    work.running["first"].errback(ValueError())
    work.clock.advance(0)
    assert work.begun == ["first", "other", "second"]
    results[0].addErrback(lambda failure: failure.trap(ValueError))
    for name in ("second", "third", "other"):
        work.end(name)
    assert [result.result for result in (*results[1:], other)] == ["second", "third", "other"]
    assert work.queue._waiting == {}


def test_who_has_gone_leaves_the_queue(work):
    """A request that is cancelled while it waits never runs, wherever in the queue it was."""
    _, *waiting = [work.ask(name) for name in ("first", "second", "third", "fourth")]
    for gone in (waiting[1], waiting[0]):
        gone.cancel()
        gone.addErrback(lambda failure: failure.trap(CancelledError))
    work.running["first"].callback(None)
    waiting[2].cancel()  # after the end of the first, and before its turn
    waiting[2].addErrback(lambda failure: failure.trap(CancelledError))
    work.clock.advance(0)
    assert work.begun == ["first"]
    assert work.queue._waiting == {}
    assert work.ask("fifth") is not None
    assert work.begun == ["first", "fifth"]


def test_a_queue_has_a_bound(work):
    """One more than may wait is refused, which is reported, and so are others until one has left."""
    work.ask("first")
    waiting = [work.ask(number) for number in range(WAITING)]
    refused = work.ask("one more")
    assert refused.addErrback(lambda failure: failure.trap(TooMany)).result is TooMany
    assert work.refused == 1
    waiting[0].addErrback(lambda failure: failure.trap(CancelledError))
    waiting[0].cancel()
    assert not work.ask("another").called


@pytest.fixture
def held(server):
    """Hold a player's row from outside, as `hold(user_id)`, until the test calls `release`."""
    connection = connect(server.dsn)
    connection.autocommit = False

    def hold(user_id):
        connection.cursor().execute("SELECT FROM users WHERE id = %s FOR UPDATE", (user_id,))
        return connection.rollback

    yield hold
    connection.close()


async def test_one_account_can_not_hold_all_connections(server, reactor, held):
    """40 writes of a player wait for one row that somebody holds: others are served at once, and then they are too."""
    ann, bob = await server.player("ann"), await server.player("bob")
    release = held((await ann.me()).id)
    bearer = ann.tokens.access_token
    requests = [
        ("POST", "/api/sync/push", {}, progress_of()),
        ("POST", "/api/replays", {}, replay()),
        ("PUT", "/api/me/avatar", {"Content-Type": "image/png"}, IMAGES["png"]),
    ] * 10 + [
        ("POST", "/api/leaderboard/opt-in", {}, {"display_name": "Ann"}),
        ("DELETE", "/api/leaderboard/opt-in", {}, None),
    ] * 5

    async def send(request):
        method, path, headers, body = request
        return (await server.ask(method, path, headers, body, bearer=bearer)).status

    answers = gather(40, send, requests)
    waiting = Deferred.fromCoroutine(answers)
    await until(reactor, lambda: lock_waiters(server.dsn))
    for _ in range(20):
        assert (await bob.me()).username == "bob"
    assert len(lock_waiters(server.dsn)) == 1
    assert not waiting.called
    release()
    assert set(await waiting) == {200}


async def test_too_many_waiting_writes_of_a_player_are_a_429(server, reactor, held):
    """Those in the queue are served when their turn comes."""
    ann = await server.player("ann")
    release = held((await ann.me()).id)
    answers = []

    async def send(number):
        answers.append(await push(server, ann, progress_of()))

    waiting = Deferred.fromCoroutine(gather(WAITING + 5, send, range(WAITING + 5)))
    await until(reactor, lambda: len(answers) == 4)
    assert {(answer.status, answer.headers["retry-after"]) for answer in answers} == {(429, "1")}
    release()
    await waiting
    assert sorted(answer.status for answer in answers) == [200] * (WAITING + 1) + [429] * 4
