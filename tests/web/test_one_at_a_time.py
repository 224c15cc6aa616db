"""The writes of one player run one at a time; other players' writes don't wait (docs/security.md "Bounds")."""

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
    """Pieces of work that end when the test ends them."""

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


def test_work_of_one_key_runs_in_order(work):
    """Each piece begins when the one before has ended or failed. Work of other keys doesn't wait."""
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


def test_cancelled_request_leaves_the_queue(work):
    """The request never runs, wherever it was in the queue."""
    _, *waiting = [work.ask(name) for name in ("first", "second", "third", "fourth")]
    for gone in (waiting[1], waiting[0]):
        gone.cancel()
        gone.addErrback(lambda failure: failure.trap(CancelledError))
    work.running["first"].callback(None)
    waiting[2].cancel()  # after the end of the first, and before the third's turn
    waiting[2].addErrback(lambda failure: failure.trap(CancelledError))
    work.clock.advance(0)
    assert work.begun == ["first"]
    assert work.queue._waiting == {}
    assert work.ask("fifth") is not None
    assert work.begun == ["first", "fifth"]


def test_full_queue_refuses_more_work(work):
    """Each refusal is reported, until a piece of work has left the queue."""
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


async def test_account_can_not_hold_all_connections(server, reactor, held):
    """40 writes of a player wait for a locked row; other players' requests don't, and all writes succeed in the end."""
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


async def test_too_many_waiting_writes_of_a_player_get_429(server, reactor, held):
    """Writes in the queue still run."""
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
