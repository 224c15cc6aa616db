"""Counting games across devices (docs/sync.md "How games are counted"): the rule, and simulated histories."""

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.rules.counting import MOST_ANSWERS, NO_GAMES, NOTHING_KNOWN, Basis, Counts, Known, add
from solisync.rules.fields import U32_MAX, U64_MAX
from tests.harness.devices import Device, Truth

COUNTS = st.builds(Counts, *4 * [st.integers(0, 50)], *2 * [st.integers(0, 9)], st.integers(0, 9_000))


def games(number, seconds=100):
    """The counts of a player who has won this many games, all alike."""
    return Counts(number, number, 10 * number, 5 * number, number, 0, number * seconds)


def test_two_devices_that_play_on_from_a_hundred_have_a_hundred_and_twelve():
    """Five games on one device and seven on the other are twelve more, where the higher counter is seven more."""
    knows = Known(games(100), ())
    assert add(games(105), games(100), knows) == (Basis.COUNTED, games(105))
    assert add(games(107), games(105), knows) == (Basis.COUNTED, games(112))


def test_what_is_in_an_answer_is_not_counted_again():
    """A device that has taken up an answer pushes it back with its own games; one that has not, without."""
    knows = Known(games(105), (games(112),))
    assert add(games(115), games(112), knows) == (Basis.COUNTED, games(115))
    assert add(games(108), games(112), knows) == (Basis.COUNTED, games(115))


def test_a_push_of_a_session_that_nothing_is_known_of_is_not_counted():
    """The first push without a pull before, or one that reaches no answer, is merged by the higher counter."""
    assert add(games(7), games(100), NOTHING_KNOWN)[0] is Basis.MAXIMUM
    assert add(games(7), games(100), Known(None, (games(100),)))[0] is Basis.MAXIMUM


def test_a_push_that_comes_late_is_stale():
    """What is below the last push of its session adds nothing, and only its answer is remembered."""
    knows = Known(games(9), (games(12),))
    assert add(games(8), games(12), knows)[0] is Basis.STALE
    assert knows.after(games(8), games(13), Basis.STALE) == Known(games(9), (games(12), games(13)))


def test_answers_stay_until_a_push_covers_them():
    """Those that a push does not reach may still be on their way to the device."""
    knows = Known(None, (games(5), games(20)))
    assert knows.after(games(9), games(21), Basis.COUNTED) == Known(games(9), (games(20), games(21)))


def test_after_too_many_answers_only_the_latest_counts():
    """A base from some of the answers alone would count the games of the others twice."""
    answers = tuple(games(number) for number in range(20, 20 + MOST_ANSWERS))
    assert Known(games(1), answers).after(games(2), games(90), Basis.COUNTED) == Known(None, (games(90),))


def test_counts_stop_at_the_end_of_their_range():
    """A sum beyond u32 or u64 is their greatest value."""
    full = Counts(U32_MAX, U32_MAX, U64_MAX, U64_MAX, U32_MAX, U32_MAX, 0)
    basis, counts = add(games(10), full, Known(games(1), ()))
    assert (basis, counts[:6]) == (Basis.COUNTED, full[:6])


@given(COUNTS, COUNTS, st.builds(Known, st.none() | COUNTS, st.lists(COUNTS, max_size=3).map(tuple)))
def test_counting_never_takes_away(pushed, stored, known):
    """Whatever is known, the result reaches what was pushed and what was stored."""
    basis, counts = add(pushed, stored, known)
    if basis is Basis.COUNTED:
        assert all(map(int.__ge__, counts[:6], pushed[:6]))
        assert all(map(int.__ge__, counts[:6], stored[:6]))


@dataclass
class Server:
    """What the server does with the counts alone."""

    counting: bool
    stored: Counts = NO_GAMES
    told: Counts = NO_GAMES
    known: dict = field(default_factory=dict)

    def pull(self, session):
        knows = self.known.get(session, NOTHING_KNOWN)
        if self.told not in knows.answers:
            room = len(knows.answers) < MOST_ANSWERS
            self.known[session] = (
                Known(knows.pushed, (*knows.answers, self.told)) if room else Known(None, (self.told,))
            )
        return self.stored

    def push(self, session, pushed):
        knows = self.known.get(session, NOTHING_KNOWN)
        basis, merged = add(pushed, self.stored, knows)
        if basis is not Basis.COUNTED or not self.counting:
            leader = max(self.stored, pushed, key=lambda counts: counts.games_won)
            merged = Counts(*map(max, pushed[:4], self.stored[:4]), *leader[4:])
        time = merged.games_won and merged.time // merged.games_won * merged.games_won
        self.stored = merged._replace(games_played=max(merged[:2]), time=time)
        self.told = self.stored.told_after(self.told)
        self.known[session] = knows.after(pushed, self.told, basis)
        return self.stored


def history(random, *, counting=True, lost=0.0, simple=False):
    """Let two to four devices play and sync; returns what the server has in the end, and the truth.

    A `simple` device keeps the greater counters of an answer and of its own, or ignores the answer.
    """
    server, truth = Server(counting), Truth()
    devices = [Device() for _ in range(random.randint(2, 4))]
    sessions, late = list(range(len(devices))), []

    def take(device, answer):
        if not simple:
            device.take_up(answer)
        elif random.random() < 0.7:
            device.take_maximum(answer)

    def pull(number):
        if random.random() >= lost:
            answer = server.pull(sessions[number])
            if random.random() >= lost:
                take(devices[number], answer)

    def push(number):
        device, pushed = devices[number], devices[number].pushes()
        if random.random() < lost:
            if random.random() < 0.5:
                late.append((sessions[number], pushed))
            return
        answer = server.push(sessions[number], pushed)
        device.synced = device.counts
        if random.random() >= lost:
            take(device, answer)
        elif random.random() < 0.5:
            server.push(sessions[number], pushed)

    def begin(number):
        late[:] = [each for each in late if each[0] != sessions[number]]
        sessions[number] = max(sessions) + 1
        answer = server.pull(sessions[number])
        take(devices[number], answer) if simple else devices[number].take_up(answer)

    for number in range(len(devices)):
        begin(number)
    for _ in range(random.randint(5, 60)):
        number = random.randrange(len(devices))
        game = {"won": random.random() < 0.6, "score": random.randint(0, 700), "seconds": random.randint(40, 900)}
        chance = random.random()
        if chance < 0.55:
            devices[number].play(game)
            truth.play(game)
        elif chance < 0.8:
            push(number)
        elif chance < 0.93:
            pull(number)
        elif chance < 0.97 and late:
            server.push(*late.pop(random.randrange(len(late))))
        elif chance < 0.98:
            begin(number)
        if counting:
            truth.check(server.stored)
    lost = 0.0
    for number in range(len(devices)):
        push(number)
    return server.stored, truth.counts


def share(histories):
    """How many of a hundred games that were played are counted in the end."""
    ends = list(histories)
    return 100 * sum(stored.games_played for stored, _ in ends) / sum(true.games_played for _, true in ends)


@pytest.mark.parametrize(("lost", "simple"), [(0, False), (0, True), (0.2, True)])
def test_no_history_counts_a_game_that_was_not_played(lost, simple, full, figure):
    """Of many devices, with messages that are lost, repeated or late: never above the truth, and far above maxima."""
    count = 3_000 if full else 300
    counted = share(history(Random(seed), lost=lost, simple=simple) for seed in range(count))
    maxima = share(history(Random(seed), lost=lost, simple=simple, counting=False) for seed in range(count))
    how = "which keep the greater counters" if simple else "which take up answers"
    figure(f"devices {how}, {lost:.0%} lost: {counted:.1f} % of games counted, {maxima:.1f} % by maxima")
    assert counted > maxima + 10


def test_every_game_counts_where_nothing_is_lost():
    """Devices that begin with a pull and take up every answer: exactly the games that were played."""
    for seed in range(300):
        stored, true = history(Random(seed))
        assert stored[:6] == true[:6], seed
