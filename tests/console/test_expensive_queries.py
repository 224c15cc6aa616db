"""Expensive queries: docs/console.md "Who gets in", limits."""

import pytest
from twisted.internet.defer import Deferred, gatherResults

from solisync.errors import Unavailable
from solisync.web.handler_limits import EXPENSIVE_WAITING, ExpensiveQueries
from tests.harness.concurrency import gather


@pytest.fixture
def asked():
    """The queries that have begun; each ends when the test decides."""
    return []


def ask(expensive, asked):
    async def question():
        asked.append(Deferred())
        return await asked[-1]

    return Deferred.fromCoroutine(expensive.run(question))


async def test_expensive_queries_run_one_at_a_time(asked):
    """A bounded number of queries wait for their turn; the next one is unavailable."""
    expensive = ExpensiveQueries()
    waiting = [ask(expensive, asked) for _ in range(1 + EXPENSIVE_WAITING)]
    with pytest.raises(Unavailable) as refusal:
        await ask(expensive, asked)
    assert refusal.value.retry_after > 0
    for number, answer in enumerate(waiting):
        assert len(asked) == number + 1
        asked[number].callback(number)
        assert await answer == number


async def test_query_keeps_its_place_when_its_client_leaves(asked):
    """Otherwise a client that connects again and again would run many queries at the same time."""
    expensive = ExpensiveQueries()
    first, second = ask(expensive, asked), ask(expensive, asked)
    second.addErrback(lambda failure: None)
    first.addErrback(lambda failure: None)
    first.cancel()
    assert len(asked) == 1
    asked[0].callback(None)
    assert len(asked) == 2


async def test_failed_query_lets_the_next_one_run(asked):
    """Only its client gets the error."""
    expensive = ExpensiveQueries()
    first, second = ask(expensive, asked), ask(expensive, asked)
    asked[0].errback(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await first
    asked[1].callback(2)
    assert await second == 2


async def test_searches_for_parts_of_names_are_expensive_queries(console, server):
    """Of fifty at the same time few are answered; the others get Retry-After. Players are served as usual."""
    await console.sign_in()
    ann = await server.player("ann")
    asking = gather(50, lambda _: console.ask("GET", "/players?q=nn&where=part"), range(50))
    answers, me = await gatherResults([Deferred.fromCoroutine(each) for each in (asking, ann.me())])
    assert me.username == "ann"
    statuses = [(answer.status, answer.headers.get("retry-after")) for answer in answers]
    assert (200, None) in statuses
    assert {*statuses} <= {(200, None), (503, "2")}
