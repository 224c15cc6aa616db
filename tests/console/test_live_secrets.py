"""The codes and sessions of admins that a process knows to be live: docs/console.md "Signing in"."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from solisync.web.console.signing_in import LOADINGS_APART, LiveSecrets

ANN, BOB = b"ann", b"bob"


class Loads:
    """Loadings that end when the test decides."""

    def __init__(self):
        self.begun = []
        self.clock = Clock()
        self.live = LiveSecrets(self.load, reactor=self.clock)

    async def load(self):
        self.begun.append(Deferred())
        return await self.begun[-1]

    def ask(self, secret):
        return Deferred.fromCoroutine(self.live.knows(secret))

    def loaded(self, *secrets):
        """Begin a loading if secrets wait, and end the latest one with these secrets."""
        self.clock.advance(LOADINGS_APART)
        self.begun[-1].callback(secrets)


@pytest.fixture
def loads():
    return Loads()


async def test_waiting_secrets_share_one_loading(loads):
    """The database gets one query for all secrets that arrive before the loading begins."""
    asked = [loads.ask(secret) for secret in (ANN, BOB, b"nobody") * 5]
    loads.loaded(ANN)
    assert [await answer for answer in asked] == [True, False, False] * 5
    assert len(loads.begun) == 1


async def test_secret_waits_for_the_loading_after_the_current_one(loads):
    """A running loading may have missed the secret. The next begins after its end, and after a minimum pause."""
    first = loads.ask(ANN)
    loads.clock.advance(0)
    second = loads.ask(BOB)
    loads.clock.advance(LOADINGS_APART * 5)
    assert len(loads.begun) == 1
    loads.begun[0].callback([])
    assert await first is False
    loads.clock.advance(0)
    assert len(loads.begun) == 2
    third = loads.ask(ANN)
    loads.begun[1].callback([BOB])
    assert await second is True
    loads.clock.advance(LOADINGS_APART / 2)
    assert len(loads.begun) == 2
    loads.loaded(ANN)
    assert await third is True


async def test_known_secret_waits_for_no_loading(loads):
    """Unknown secrets don't delay it."""
    first = loads.ask(ANN)
    loads.loaded(ANN, BOB)
    assert await first is True
    waiting = [loads.ask(bytes([number])) for number in range(100)]
    assert await loads.ask(BOB) is True
    assert not any(answer.called for answer in waiting)
    loads.loaded()
    assert not any([await answer for answer in waiting])


async def test_forgotten_secret_waits_again(loads):
    """The next loading may bring it back."""
    asked = loads.ask(ANN)
    loads.loaded(ANN)
    assert await asked is True
    loads.live.forget(ANN)
    again = loads.ask(ANN)
    assert not again.called
    loads.loaded(ANN)
    assert await again is True


async def test_failed_loading_fails_for_all_waiting_secrets(loads):
    """The next secret begins another loading; a client that has hung up gets no error."""
    asked = [loads.ask(ANN) for _ in range(3)]
    asked[1].addErrback(lambda failure: None)
    loads.clock.advance(0)
    asked[1].cancel()
    loads.begun[0].errback(ValueError("away"))
    for answer in (asked[0], asked[2]):
        with pytest.raises(ValueError, match="away"):
            await answer
    again = loads.ask(ANN)
    loads.loaded(ANN)
    assert await again is True
