"""Several attempts to connect: their order, the winner, and the end of the others."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from solisync.errors import ConnectionFailed
from solisync.postgres.race import staggered_race

HEAD_START = 0.5


class Race:
    """Attempts that end when the test decides; those that have begun are in `running`."""

    def __init__(self, count):
        self.clock = Clock()
        self.running = {}
        self.cancelled = []
        self.outcome = Deferred.fromCoroutine(
            staggered_race(self.clock, [self._attempt(number) for number in range(count)], HEAD_START)
        )

    def _attempt(self, number):
        async def attempt():
            self.running[number] = Deferred(lambda _: self.cancelled.append(number))
            return await self.running[number]

        return attempt


async def test_each_attempt_has_a_head_start():
    """The next attempt begins when the earlier ones are silent for a while. The first success counts."""
    race = Race(3)
    assert set(race.running) == {0}
    race.clock.advance(HEAD_START)
    assert set(race.running) == {0, 1}
    race.running[1].callback("b")
    assert await race.outcome == (1, "b")
    assert race.cancelled == [0]
    race.clock.advance(1000)
    assert set(race.running) == {0, 1}
    assert not race.clock.getDelayedCalls()


@pytest.mark.parametrize("error", [ConnectionFailed("refused"), KeyError("bug")])
async def test_failed_attempt_starts_the_next_immediately(error):
    """The kind of failure doesn't matter."""
    race = Race(2)
    race.running[0].errback(error)
    race.running[1].callback("b")
    assert await race.outcome == (1, "b")
    assert not race.clock.getDelayedCalls()


async def test_slow_attempt_may_still_win():
    race = Race(2)
    race.clock.advance(HEAD_START)
    race.running[1].errback(ConnectionFailed("refused"))
    race.running[0].callback("a")
    assert await race.outcome == (0, "a")


async def test_error_lists_the_reasons_of_all_attempts():
    """The reasons have the order of the attempts."""
    race = Race(2)
    race.clock.advance(HEAD_START)
    race.running[1].errback(ConnectionFailed("two"))
    race.running[0].errback(ConnectionFailed("one"))
    with pytest.raises(ConnectionFailed, match=r"^one; two$"):
        await race.outcome


async def test_unexpected_error_is_raised_as_it_is():
    """Of errors other than ConnectionFailed the first counts."""
    race = Race(2)
    race.running[0].errback(ConnectionFailed("one"))
    race.running[1].errback(KeyError("bug"))
    with pytest.raises(KeyError):
        await race.outcome


async def test_cancelling_cancels_all_attempts():
    """No attempt and no timer is left."""
    race = Race(3)
    race.clock.advance(HEAD_START)
    race.outcome.cancel()
    with pytest.raises(CancelledError):
        await race.outcome
    assert race.cancelled == [0, 1]
    assert not race.clock.getDelayedCalls()
