"""The set of suspended and cut-off players in each process: its cost, and requests without a database."""

from types import SimpleNamespace

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from solisync.access.restrictions import Restrictions
from solisync.errors import ConnectionLost, Forbidden, Unauthorized, Unavailable
from solisync.rules.sessions import SessionRef
from solisync.storage.players.restrictions import RestrictionSet

ANN, BOB, EVE = SessionRef("ann", 100), SessionRef("bob", 100), SessionRef("eve", 100)
EVERYBODY = RestrictionSet(7, 0, ["ann"], [None], ["stop"], ["bob"], [100])
UNCHANGED = RestrictionSet(7, 0, None, None, None, None, None)


@pytest.fixture
def asked():
    """Record the known numbers that were sent to the database, and supply its answers."""
    return SimpleNamespace(known=[], answers=[])


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def restrictions(asked, clock):
    async def run(work, known):
        asked.known.append(known)
        answer = asked.answers.pop(0)
        return await answer if isinstance(answer, Deferred) else answer

    asked.counts = []
    return Restrictions(database=SimpleNamespace(run=run), reactor=clock, on_change=asked.counts.append)


async def test_restrictions_are_loaded_once_a_second_and_only_when_changed(asked, clock, restrictions):
    """The number of requests doesn't matter. An unchanged number keeps the known set."""
    asked.answers = [EVERYBODY, UNCHANGED]
    for _ in range(3):
        assert restrictions.fresh == (asked.known != [])
        await restrictions.refresh()
    assert asked.known == [-1]
    clock.advance(1)
    assert not restrictions.fresh
    await restrictions.refresh()
    assert restrictions.fresh
    assert (asked.known, asked.counts) == ([-1, 7], [1])
    with pytest.raises(Forbidden, match="this account is suspended: stop"):
        restrictions.check(ANN)


async def test_only_suspended_players_and_older_tokens_are_refused(asked, restrictions):
    """A suspended player is refused with any token, a cut-off player with tokens up to the cutoff."""
    asked.answers = [EVERYBODY]
    await restrictions.refresh()
    for claims, error in [(ANN, Forbidden), (SessionRef("ann", 999), Forbidden), (BOB, Unauthorized)]:
        with pytest.raises(error):
            restrictions.check(claims)
    for claims in (EVE, SessionRef("bob", 101)):
        restrictions.check(claims)


async def test_age_of_the_restrictions_counts_from_the_question(asked, clock, restrictions):
    """The database may take long to answer."""
    answer = Deferred()
    asked.answers = [answer]
    waiting = Deferred.fromCoroutine(restrictions.refresh())
    clock.advance(0.9)
    answer.callback(EVERYBODY)
    await waiting
    assert restrictions.fresh
    clock.advance(0.2)
    assert not restrictions.fresh


async def test_requests_are_refused_without_a_database(asked, clock, restrictions):
    """The next request immediately asks the database again."""
    failing = Deferred()
    asked.answers = [failing, EVERYBODY]
    waiting = [Deferred.fromCoroutine(restrictions.refresh()) for _ in range(2)]
    failing.errback(ConnectionLost("gone"))
    for each in waiting:
        with pytest.raises(Unavailable):
            await each
    assert not restrictions.fresh
    await restrictions.refresh()
    assert restrictions.fresh
