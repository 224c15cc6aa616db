"""Counting games across devices (docs/sync.md "How games are counted"): the rule, and simulated histories."""

from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.rules.counting import MOST_ANSWERS, NO_GAMES, NOTHING_KNOWN, Basis, GameCounts, Known, add, sum_of
from solisync.rules.shapes import U32_MAX, U64_MAX
from tests.harness.devices import Device, Truth

COUNTS = st.builds(GameCounts, *4 * [st.integers(0, 50)], *2 * [st.integers(0, 9)], st.integers(0, 9_000))


def games(number, seconds=100):
    """The counts of a player who has won this many games, all alike."""
    return GameCounts(number, number, 10 * number, 5 * number, number, 0, number * seconds)


def test_two_devices_that_play_on_from_a_hundred_have_a_hundred_and_twelve():
    """Five games on one device and seven on the other are twelve more, where the higher counter is seven more."""
    knows = Known(games(100), ())
    assert add(games(105), games(100), knows)[:2] == (Basis.COUNTED, games(105))
    assert add(games(107), games(105), knows)[:2] == (Basis.COUNTED, games(112))


def test_what_is_in_an_answer_is_not_counted_again():
    """A device that has taken up an answer pushes it back with its own games; one that has not, without."""
    knows = Known(games(105), (games(112),))
    assert add(games(115), games(112), knows)[:2] == (Basis.COUNTED, games(115))
    assert add(games(108), games(112), knows)[:2] == (Basis.COUNTED, games(115))


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


def test_a_push_merged_by_the_higher_counter_is_known_only_if_it_has_all_that_is_stored():
    """Otherwise it may have come late: its device may have pushed more, which is in its answer and in none before."""
    knows = Known(None, (games(50),))
    assert knows.after(games(27), games(60), Basis.MAXIMUM) == Known(None, (games(60),))
    assert NOTHING_KNOWN.after(games(60), games(60), Basis.MAXIMUM) == Known(games(60), (games(60),))


def test_what_a_device_was_told_of_wins_by_draw_mode_stays_known():
    """A push may reach an answer without these, and the next one have them: they are not counted again."""
    told = games(9)._replace(draw_three_wins=2)
    knows = Known(games(5), (told,)).after(games(9), games(12), Basis.COUNTED)
    assert knows == Known(told, (games(12),))


def test_there_are_no_more_new_wins_by_draw_mode_than_new_wins():
    """Others are older ones that a merge by maxima has taken from the stored counts."""
    pushed, stored = games(10)._replace(draw_one_wins=9, draw_three_wins=2), games(12)._replace(draw_three_wins=2)
    _, counts, _ = add(pushed, stored, Known(games(9), ()))
    assert (counts.games_won, counts.draw_one_wins, counts.draw_three_wins) == (13, 12, 2)


def test_after_too_many_answers_only_the_latest_counts():
    """A base from some of the answers alone would count the games of the others twice."""
    answers = tuple(games(number) for number in range(20, 20 + MOST_ANSWERS))
    assert Known(games(1), answers).after(games(2), games(90), Basis.COUNTED) == Known(None, (games(90),))


def test_counts_stop_at_the_end_of_their_range():
    """A sum beyond u32 or u64 is their greatest value."""
    full = GameCounts(U32_MAX, U32_MAX, U64_MAX, U64_MAX, U32_MAX, U32_MAX, 0)
    basis, counts, _ = add(games(10), full, Known(games(1), ()))
    assert (basis, counts[:6]) == (Basis.COUNTED, full[:6])


@given(COUNTS, COUNTS, st.builds(Known, st.none() | COUNTS, st.lists(COUNTS, max_size=3).map(tuple)))
def test_counting_never_takes_away(pushed, stored, known):
    """Whatever is known, the result reaches what was pushed and what was stored."""
    basis, counts, _ = add(pushed, stored, known)
    if basis is Basis.COUNTED:
        assert all(map(int.__ge__, counts[:6], pushed[:6]))
        assert all(map(int.__ge__, counts[:6], stored[:6]))


@dataclass
class Server:
    """What the server does with the counts alone."""

    counting: bool = True
    stored: GameCounts = NO_GAMES
    told: GameCounts = NO_GAMES
    known: dict = field(default_factory=dict)

    def begin(self, session):
        self.known[session] = NOTHING_KNOWN

    def pull(self, session):
        """The stored counts; without a session, every session may have been told them."""
        told_only = Known(None, (self.told,))
        for each in [session] if session else [*self.known]:
            knows = self.known[each]
            if self.told not in knows.answers:
                room = len(knows.answers) < MOST_ANSWERS
                self.known[each] = Known(knows.pushed, (*knows.answers, self.told)) if room else told_only
        return self.stored

    def push(self, session, pushed):
        """The counts with those of a push; without a session, it may be of every session's device."""
        knows = self.known.get(session, NOTHING_KNOWN)
        basis, merged, _ = add(pushed, self.stored, knows)
        if basis is not Basis.COUNTED or not self.counting:
            leader = max(pushed, self.stored, key=lambda counts: counts.games_won)
            merged = GameCounts(*map(max, pushed[:4], self.stored[:4]), *leader[4:])
        time = merged.games_won and merged.time // merged.games_won * merged.games_won
        self.stored = merged._replace(games_played=max(merged[:2]), time=time)
        self.told = self.stored.with_most_draws(self.told)
        if session:
            self.known[session] = knows.after(pushed, self.told, basis)
        else:
            self.known = dict.fromkeys(self.known, Known(None, (self.told,)))
        return self.stored

    def join(self, session, guest):
        """Add the games of a guest."""
        merged = sum_of(self.stored, guest)
        self.stored = merged._replace(time=merged.games_won and merged.time // merged.games_won * merged.games_won)
        self.told = self.stored.with_most_draws(self.told)
        return self.pull(session)

    def crash(self):
        """Lose what is not logged."""
        self.known = dict.fromkeys(self.known, NOTHING_KNOWN)

    def push_at_an_old_node(self, pushed):
        """Merge by the higher counters, and end the memory."""
        self.told = NO_GAMES
        self.crash()
        self.push(None, pushed)
        self.crash()
        return self.stored


@dataclass(frozen=True, kw_only=True)
class Faults:
    """How often something goes wrong: of all messages, or of all that happens."""

    lost: float = 0.0  # messages; half of the pushes among them arrive later
    old_tokens: float = 0.0  # messages with an access token that names no session
    crashes: float = 0.0  # and pushes at a node of an older version
    logins: float = 0.01
    joins: float = 0.0
    refreshes: float = 0.0
    lost_refreshes: float = 0.5  # of their requests, and of their answers; the device repeats them with the same key


class History:
    """Two to four devices that play and sync. A `simple` one keeps the greater counters, or ignores an answer."""

    def __init__(self, seed, faults, *, simple, counting):
        self.random, self.faults, self.simple = Random(seed), faults, simple
        self.server, self.truth, self.late = Server(counting), Truth(), []
        self.devices = [Device() for _ in range(self.random.randint(2, 4))]
        self.sessions = [0] * len(self.devices)
        self.held = [0] * len(self.devices)  # the number of the access token that each device has
        self.issued = {}  # the number of the newest access token of each session
        for number in range(len(self.devices)):
            self.begin(number)

    def happens(self, chance):
        return self.random.random() < chance

    def named(self, session, token):
        """The session that an access token names: its newest one does, and the one before."""
        return None if self.happens(self.faults.old_tokens) or token < self.issued[session] - 1 else session

    def token(self, number):
        return self.named(self.sessions[number], self.held[number])

    def refresh(self, number):
        session = self.sessions[number]
        if not self.happens(self.faults.lost_refreshes):
            self.issued[session] = self.held[number] + 1  # the same for a repeat
            if not self.happens(self.faults.lost_refreshes):
                self.held[number] += 1

    def take(self, device, answer):
        if not self.simple:
            device.take_up(answer)
        elif self.happens(0.7):
            device.take_maximum(answer)

    def begin(self, number):
        """Log in. What is under way of the session before is lost, or comes with a token of no session: it ended."""
        ended = self.sessions[number]
        kept = [(None, 0, each[2]) for each in self.late if each[0] == ended and self.happens(self.faults.lost)]
        self.late = [each for each in self.late if each[0] != ended] + kept
        self.sessions[number] = max(self.sessions) + 1
        self.server.known.pop(ended, None)
        self.server.begin(self.sessions[number])
        self.issued[self.sessions[number]] = self.held[number] = 0
        self.pull(number)

    def pull(self, number):
        if not self.happens(self.faults.lost):
            answer = self.server.pull(self.token(number))
            if not self.happens(self.faults.lost):
                self.take(self.devices[number], answer)

    def push(self, number):
        device, pushed = self.devices[number], self.devices[number].pushes()
        if self.happens(self.faults.lost):
            if self.happens(0.5):
                self.late.append((self.sessions[number], self.held[number], pushed))
            return
        token = self.token(number)
        answer = self.server.push(token, pushed)
        device.synced = device.counts
        if not self.happens(self.faults.lost):
            self.take(device, answer)
        elif self.happens(0.5):
            self.server.push(token, pushed)

    def join(self, number):
        """Play as a guest, and join it on this device; the device repeats the request until it is answered."""
        guest = Device()
        for _ in range(self.random.randint(1, 3)):
            self.play(guest)
        answer = self.server.join(self.token(number), guest.pushes())
        while self.happens(self.faults.lost):
            answer = self.server.pull(self.token(number))
        self.take(self.devices[number], answer)

    def play(self, device):
        game = {"won": self.happens(0.6), "score": self.random.randint(0, 700), "seconds": self.random.randint(40, 900)}
        device.play(game)
        self.truth.play(game)

    def fail(self, number):
        if self.happens(0.5):
            return self.server.crash()
        device = self.devices[number]
        answer = self.server.push_at_an_old_node(device.pushes())
        device.synced = device.counts
        return self.take(device, answer)

    def step(self):
        number = self.random.randrange(len(self.devices))
        if self.happens(self.faults.crashes):
            self.fail(number)
        elif self.happens(self.faults.logins):
            self.begin(number)
        elif self.happens(self.faults.refreshes):
            self.refresh(number)
        elif self.happens(self.faults.joins):
            self.join(number)
        elif self.happens(0.55):
            self.play(self.devices[number])
        elif self.happens(0.55):
            self.push(number)
        elif self.happens(0.65) or not self.late:
            self.pull(number)
        else:
            session, token, pushed = self.late.pop(self.random.randrange(len(self.late)))
            self.server.push(session and self.named(session, token), pushed)

    def run(self):
        """What the server has in the end, and the truth; at no time has it more."""
        for _ in range(self.random.randint(5, 60)):
            self.step()
            if self.server.counting:
                self.truth.check(self.server.stored)
        self.faults = Faults()
        for number in range(len(self.devices)):
            self.push(number)
        return self.server.stored, self.truth.counts


def histories(count, faults, *, simple, counting=True):
    """What so many histories end with."""
    return [History(seed, faults, simple=simple, counting=counting).run() for seed in range(count)]


def share(ends):
    """How many of a hundred games that were played are counted in the end."""
    return 100 * sum(stored.games_played for stored, _ in ends) / sum(true.games_played for _, true in ends)


LOSSES = Faults(lost=0.2)
EVERYTHING = Faults(lost=0.2, old_tokens=0.1, crashes=0.03, logins=0.03, refreshes=0.1, joins=0.05)
MIXES = {
    "answers taken up": (Faults(), False),
    "greater counters kept": (Faults(), True),
    "lost and late": (LOSSES, True),
    "crashes": (Faults(crashes=0.03), True),
    "logins": (Faults(logins=0.04), True),
    "older tokens": (Faults(old_tokens=0.1), True),
    "lost, late, crashes": (replace(LOSSES, crashes=0.03), True),
    "lost, late, logins": (replace(LOSSES, logins=0.04), True),
    "lost, late, older tokens": (replace(LOSSES, old_tokens=0.1), True),
    "lost, late, refreshes": (replace(LOSSES, refreshes=0.1), True),
    "lost, late, joins": (replace(LOSSES, joins=0.1), True),
    "lost, late, crashes, logins, older tokens, joins": (EVERYTHING, True),
}


@pytest.mark.parametrize("mix", MIXES)
def test_no_history_counts_a_game_that_was_not_played(mix, full, figure):
    """Whatever goes wrong together: never above the truth, never below what the higher counters alone give."""
    faults, simple = MIXES[mix]
    count = 100 if not full else 100_000 if faults is EVERYTHING else 3_000
    counted = histories(count, faults, simple=simple)
    maxima = histories(min(count, 3_000), faults, simple=simple, counting=False)
    exact = 100 * sum(stored[:6] == true[:6] for stored, true in counted) / count
    shares = f"{share(counted):.1f} % of games counted, {share(maxima):.1f} % by maxima"
    figure(f"{mix}: {shares}, {exact:.1f} % of {count} histories exact, none above the truth")
    for (stored, _), (least, _) in zip(counted, maxima, strict=False):
        assert all(map(int.__ge__, stored[:4], least[:4]))
    assert share(counted) > share(maxima)


def test_every_game_counts_where_nothing_is_lost():
    """Devices that begin with a pull and take up every answer: exactly the games that were played."""
    for stored, true in histories(300, Faults(), simple=False):
        assert stored[:6] == true[:6]


def test_every_game_counts_where_answers_of_refreshes_alone_are_lost():
    """A device syncs with the token before until the repeated refresh is answered, and is the same session."""
    for stored, true in histories(300, Faults(refreshes=0.3), simple=False):
        assert stored[:6] == true[:6]


def test_every_game_counts_where_guests_join():
    """Games of guests add up with those of the player, whatever else its devices play and push."""
    for stored, true in histories(300, Faults(joins=0.2), simple=False):
        assert stored[:6] == true[:6]
