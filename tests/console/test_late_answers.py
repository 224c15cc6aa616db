"""Late answers at the console: docs/console.md "Signing in"."""

from types import SimpleNamespace

import pytest
from twisted.internet.task import Clock

from solisync.web.console.signing_in import LATE_SECONDS, PER_TICK, TICK_SECONDS, LateAnswers


class Client(SimpleNamespace):
    """A client that waits for an answer."""

    __hash__ = object.__hash__


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def answers(clock):
    return LateAnswers(reactor=clock)


def hold(answers, count):
    """Let this number of clients wait; return them, and the numbers of those that have been answered."""
    clients, answered = [Client(number=number) for number in range(count)], []
    for client in clients:
        answers.hold(client, lambda client=client: answered.append(client.number))
    return clients, answered


def test_answers_are_delayed_and_bounded(answers, clock):
    """The answers keep the order of the requests."""
    _, answered = hold(answers, 2 * PER_TICK + 1)
    clock.pump([TICK_SECONDS] * round(LATE_SECONDS / TICK_SECONDS - 1))
    assert answered == []
    clock.pump([TICK_SECONDS] * 2)
    sent = len(answered)
    assert 0 < sent <= 2 * PER_TICK
    clock.pump([TICK_SECONDS] * 3)
    assert answered == [*range(2 * PER_TICK + 1)]
    assert not clock.getDelayedCalls()


def test_client_that_hangs_up_frees_its_place(clock):
    """The other clients are answered, and a new one waits in its place."""
    answers = LateAnswers(reactor=clock, held=3)
    clients, answered = hold(answers, 3)
    clients[1].on_gone()
    _, later = hold(answers, 2)
    assert later == [1]
    clock.pump([TICK_SECONDS] * (round(LATE_SECONDS / TICK_SECONDS) + 1))
    assert (answered, later) == ([0, 2], [1, 0])
