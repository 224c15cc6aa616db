"""Expensive queries: docs/console.md "Who gets in", limits."""

import pytest
from twisted.internet.defer import Deferred, gatherResults

from solisync.errors import Unavailable
from solisync.web.console.route import WAITING, ExpensiveQueries
from tests.harness.concurrency import gather


@pytest.fixture
def asked():
    """The questions that were begun; each ends when the test says so."""
    return []


def ask(expensive, asked):
    async def question():
        asked.append(Deferred())
        return await asked[-1]

    return Deferred.fromCoroutine(expensive.run(question))


async def test_one_is_asked_at_a_time(asked):
    """Some wait, the next one is unavailable, and each is asked in its turn."""
    expensive = ExpensiveQueries()
    waiting = [ask(expensive, asked) for _ in range(1 + WAITING)]
    with pytest.raises(Unavailable) as refusal:
        await ask(expensive, asked)
    assert refusal.value.retry_after > 0
    for number, answer in enumerate(waiting):
        assert len(asked) == number + 1
        asked[number].callback(number)
        assert await answer == number


async def test_hanging_up_makes_no_room(asked):
    """Or a client that comes and goes would have the database at work on many at once."""
    expensive = ExpensiveQueries()
    first, second = ask(expensive, asked), ask(expensive, asked)
    second.addErrback(lambda failure: None)
    first.addErrback(lambda failure: None)
    first.cancel()
    assert len(asked) == 1
    asked[0].callback(None)
    assert len(asked) == 2


async def test_a_question_that_fails_makes_room(asked):
    """Its error is its asker's alone."""
    expensive = ExpensiveQueries()
    first, second = ask(expensive, asked), ask(expensive, asked)
    asked[0].errback(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await first
    asked[1].callback(2)
    assert await second == 2


async def test_parts_of_names_are_expensive(console, server):
    """Fifty at once: few are answered, the others are told when to come again; players are served meanwhile."""
    await console.sign_in()
    ann = await server.player("ann")
    asking = gather(50, lambda _: console.ask("GET", "/players?q=nn&where=part"), range(50))
    answers, me = await gatherResults([Deferred.fromCoroutine(each) for each in (asking, ann.me())])
    assert me.username == "ann"
    statuses = [(answer.status, answer.headers.get("retry-after")) for answer in answers]
    assert (200, None) in statuses
    assert {*statuses} <= {(200, None), (503, "2")}
