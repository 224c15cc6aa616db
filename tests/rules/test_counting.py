"""The rule that counts games across devices, and simulated histories (docs/sync.md "How games are counted")."""

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
    """Return the counts of a player with so many won games, all alike."""
    return GameCounts(number, number, 10 * number, 5 * number, number, 0, number * seconds)


def test_games_of_two_devices_add_up():
    """From 100 games, five on one device and seven on the other make 112. The higher counter would make 107."""
    knows = Known(games(100), ())
    assert add(games(105), games(100), knows)[:2] == (Basis.COUNTED, games(105))
    assert add(games(107), games(105), knows)[:2] == (Basis.COUNTED, games(112))


def test_games_in_a_reply_are_not_counted_again():
    """A device that has adopted a reply pushes its games back with new ones; another device pushes without them."""
    knows = Known(games(105), (games(112),))
    assert add(games(115), games(112), knows)[:2] == (Basis.COUNTED, games(115))
    assert add(games(108), games(112), knows)[:2] == (Basis.COUNTED, games(115))


def test_push_of_an_unknown_session_is_not_counted():
    """A first push without a pull, or one below every reply, is merged by the higher counter."""
    assert add(games(7), games(100), NOTHING_KNOWN)[0] is Basis.MAXIMUM
    assert add(games(7), games(100), Known(None, (games(100),)))[0] is Basis.MAXIMUM


def test_late_push_is_stale():
    """A push below the session's last push adds nothing, and only its reply is remembered."""
    knows = Known(games(9), (games(12),))
    assert add(games(8), games(12), knows)[0] is Basis.STALE
    assert knows.after(games(8), games(13), Basis.STALE) == Known(games(9), (games(12), games(13)))


def test_replies_are_remembered_until_a_push_covers_them():
    """A larger reply may still be on its way to the device."""
    knows = Known(None, (games(5), games(20)))
    assert knows.after(games(9), games(21), Basis.COUNTED) == Known(games(9), (games(20), games(21)))


def test_push_merged_by_maximum_is_remembered_if_it_covers_the_stored_counts():
    """A lower push may be late, after a larger one. The larger push is in the new reply, but in no earlier one."""
    knows = Known(None, (games(50),))
    assert knows.after(games(27), games(60), Basis.MAXIMUM) == Known(None, (games(60),))
    assert NOTHING_KNOWN.after(games(60), games(60), Basis.MAXIMUM) == Known(games(60), (games(60),))


def test_wins_by_draw_mode_in_a_reply_stay_known():
    """A push may cover a reply without them before the next push has them. The games aren't counted again."""
    told = games(9)._replace(draw_three_wins=2)
    knows = Known(games(5), (told,)).after(games(9), games(12), Basis.COUNTED)
    assert knows == Known(told, (games(12),))


def test_new_wins_by_draw_mode_do_not_exceed_new_wins():
    """Any others are older wins, which a merge by maxima has removed from the stored counts."""
    pushed, stored = games(10)._replace(draw_one_wins=9, draw_three_wins=2), games(12)._replace(draw_three_wins=2)
    _, counts, _ = add(pushed, stored, Known(games(9), ()))
    assert (counts.games_won, counts.draw_one_wins, counts.draw_three_wins) == (13, 12, 2)


def test_only_the_latest_reply_is_remembered_after_too_many():
    """A base without some of the replies would count their games twice."""
    answers = tuple(games(number) for number in range(20, 20 + MOST_ANSWERS))
    assert Known(games(1), answers).after(games(2), games(90), Basis.COUNTED) == Known(None, (games(90),))


def test_counts_stop_at_the_end_of_their_range():
    """A sum beyond u32 or u64 becomes its maximum."""
    full = GameCounts(U32_MAX, U32_MAX, U64_MAX, U64_MAX, U32_MAX, U32_MAX, 0)
    basis, counts, _ = add(games(10), full, Known(games(1), ()))
    assert (basis, counts[:6]) == (Basis.COUNTED, full[:6])


@given(COUNTS, COUNTS, st.builds(Known, st.none() | COUNTS, st.lists(COUNTS, max_size=3).map(tuple)))
def test_counting_never_lowers_a_count(pushed, stored, known):
    """The result is at least what was pushed and what was stored."""
    basis, counts, _ = add(pushed, stored, known)
    if basis is Basis.COUNTED:
        assert all(map(int.__ge__, counts[:6], pushed[:6]))
        assert all(map(int.__ge__, counts[:6], stored[:6]))


@dataclass
class Server:
    """The server's part of counting, without anything else."""

    counting: bool = True
    stored: GameCounts = NO_GAMES
    told: GameCounts = NO_GAMES
    known: dict = field(default_factory=dict)

    def begin(self, session):
        self.known[session] = NOTHING_KNOWN

    def pull(self, session):
        """Return the stored counts. A pull without a session may have reached every session's device."""
        told_only = Known(None, (self.told,))
        for each in [session] if session else [*self.known]:
            knows = self.known[each]
            if self.told not in knows.answers:
                room = len(knows.answers) < MOST_ANSWERS
                self.known[each] = Known(knows.pushed, (*knows.answers, self.told)) if room else told_only
        return self.stored

    def push(self, session, pushed):
        """Return the counts after a push. A push without a session may come from any session's device."""
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
        """Lose the memory, which isn't logged."""
        self.known = dict.fromkeys(self.known, NOTHING_KNOWN)

    def push_at_an_old_node(self, pushed):
        """Merge by the higher counters, and clear the memory."""
        self.told = NO_GAMES
        self.crash()
        self.push(None, pushed)
        self.crash()
        return self.stored


@dataclass(frozen=True, kw_only=True)
class Faults:
    """The rates of faults, as shares of all messages or events."""

    lost: float = 0.0  # lost messages; half of the pushes among them arrive later
    old_tokens: float = 0.0  # messages with an access token of no session
    crashes: float = 0.0  # and pushes at a node of an older version
    logins: float = 0.01
    joins: float = 0.0
    refreshes: float = 0.0
    lost_refreshes: float = 0.5  # requests or replies of refreshes; the device repeats them with the same key


class History:
    """Two to four devices that play and sync. A `simple` device keeps the greater counters, or ignores a reply."""

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
        """Return the session that an access token names: a session's two newest tokens name it."""
        return None if self.happens(self.faults.old_tokens) or token < self.issued[session] - 1 else session

    def token(self, number):
        return self.named(self.sessions[number], self.held[number])

    def refresh(self, number):
        session = self.sessions[number]
        if not self.happens(self.faults.lost_refreshes):
            self.issued[session] = self.held[number] + 1  # a repeat gets the same token
            if not self.happens(self.faults.lost_refreshes):
                self.held[number] += 1

    def take(self, device, answer):
        if not self.simple:
            device.take_up(answer)
        elif self.happens(0.7):
            device.take_maximum(answer)

    def begin(self, number):
        """Log in. Messages of the earlier session are lost, or arrive with a token of no session."""
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
        """Play as a guest, and join it on this device, which repeats the request until it gets a reply."""
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
        """Return the server's final counts and the truth, which they never exceed at any time."""
        for _ in range(self.random.randint(5, 60)):
            self.step()
            if self.server.counting:
                self.truth.check(self.server.stored)
        self.faults = Faults()
        for number in range(len(self.devices)):
            self.push(number)
        return self.server.stored, self.truth.counts


def histories(count, faults, *, simple, counting=True):
    """Return the results of so many histories."""
    return [History(seed, faults, simple=simple, counting=counting).run() for seed in range(count)]


def share(ends):
    """Return how many of a hundred played games are counted in the end."""
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
    """Under all faults together, counts stay between the higher counters and the truth."""
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


def test_every_game_counts_if_nothing_is_lost():
    """Devices begin with a pull and adopt every reply: the count is exact."""
    for stored, true in histories(300, Faults(), simple=False):
        assert stored[:6] == true[:6]


def test_every_game_counts_if_only_replies_of_refreshes_are_lost():
    """A device uses its previous token until its repeated refresh gets a reply, and stays in its session."""
    for stored, true in histories(300, Faults(refreshes=0.3), simple=False):
        assert stored[:6] == true[:6]


def test_every_game_counts_if_guests_join():
    """Games of guests are added to the player's, whatever other devices play and push."""
    for stored, true in histories(300, Faults(joins=0.2), simple=False):
        assert stored[:6] == true[:6]
