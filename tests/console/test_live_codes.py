"""The codes that a process knows to be live: docs/console.md "Signing in"."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from solisync.web.console.live_codes import LOADINGS_APART, LiveCodes

ANN, BOB = ("ann", b"a"), ("bob", b"b")


class Loads:
    """Loadings that end when the test says so."""

    def __init__(self):
        self.begun = []
        self.clock = Clock()
        self.codes = LiveCodes(self.load, reactor=self.clock)

    async def load(self):
        self.begun.append(Deferred())
        return await self.begun[-1]

    def take(self, code):
        return Deferred.fromCoroutine(self.codes.take(*code))

    def loaded(self, *codes):
        """Let the latest loading end with these codes, after letting it begin."""
        self.clock.advance(LOADINGS_APART)
        self.begun[-1].callback(codes)


@pytest.fixture
def loads():
    return Loads()


async def test_all_codes_that_wait_share_a_loading(loads):
    """However many arrive before it begins."""
    asked = [loads.take(code) for code in [ANN, BOB, ("ann", b"b"), ("bob", b"a")] * 5]
    loads.loaded(ANN)
    assert [await answer for answer in asked] == [True] + [False] * 19
    assert len(loads.begun) == 1


async def test_a_code_waits_for_a_loading_that_begins_later(loads):
    """A loading that is under way may have missed it; the next begins when that has ended, and not too soon."""
    first = loads.take(ANN)
    loads.clock.advance(0)
    second = loads.take(BOB)
    loads.clock.advance(LOADINGS_APART * 5)
    assert len(loads.begun) == 1
    loads.begun[0].callback([])
    assert await first is False
    loads.clock.advance(0)
    assert len(loads.begun) == 2
    third = loads.take(ANN)
    loads.begun[1].callback([BOB])
    assert await second is True
    loads.clock.advance(LOADINGS_APART / 2)
    assert len(loads.begun) == 2
    loads.loaded(ANN)
    assert await third is True


async def test_a_known_code_waits_for_nothing(loads):
    """While any number of unknown ones wait for a loading."""
    first = loads.take(ANN)
    loads.loaded(ANN, BOB)
    assert await first is True
    waiting = [loads.take(("ann", bytes([number]))) for number in range(100)]
    assert await loads.take(BOB) is True
    assert not any(answer.called for answer in waiting)
    loads.loaded()
    assert not any([await answer for answer in waiting])


async def test_each_loading_lets_a_code_be_taken_once(loads):
    """So a spent code, sent again and again, costs a statement with each loading and no more."""
    asked = [loads.take(ANN) for _ in range(3)]
    loads.loaded(ANN)
    assert [await answer for answer in asked] == [True, False, False]
    again = loads.take(ANN)
    loads.loaded(ANN)
    assert await again is True


async def test_a_loading_that_fails_fails_for_those_who_waited(loads):
    """The next code is looked up anew; who has hung up hears nothing."""
    asked = [loads.take(ANN) for _ in range(3)]
    asked[1].addErrback(lambda failure: None)
    loads.clock.advance(0)
    asked[1].cancel()
    loads.begun[0].errback(ValueError("away"))
    for answer in (asked[0], asked[2]):
        with pytest.raises(ValueError, match="away"):
            await answer
    again = loads.take(ANN)
    loads.loaded(ANN)
    assert await again is True
