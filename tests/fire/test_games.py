"""Random histories of a player whose devices send games by their ids: the counters are exactly the truth.

Devices send games in any order and split, repeat them, lose answers, and join guests who have some of the same games.
With totals of another device beside, nothing is counted that was not played.
"""

import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec import Raw

from solisync.players import progress
from solisync.rules.counting import NO_GAMES, NOTHING_KNOWN, GameCounts, counts_of
from solisync.rules.documents import read_pushed, read_stored
from solisync.rules.games import read_game
from solisync.rules.leaderboard import Standing
from solisync.storage.players.sync import Saved
from tests.harness.devices import Device, payload_of
from tests.harness.games import game
from tests.harness.payloads import encode

HISTORIES = [pytest.param(300, marks=pytest.mark.short), 100_000]
NAME, GUEST = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"
NOW = datetime(2026, 11, 28, tzinfo=UTC)
NOBODY = Standing(None, None, None)
SIX = ("games_played", "games_won", "lifetime_score", "draw_one_wins", "draw_three_wins")


class Account:
    """What the service stores of a player: the progress, and the ids of games with what they have added."""

    def __init__(self, name):
        self.name, self.payload, self.known, self.sessions = name, None, {}, {}

    def saved(self, session=None):
        counts = None if self.payload is None else counts_of(read_stored(self.payload).payload)
        return Saved(self.payload, NOBODY, counts, session, self.sessions.get(session, NOTHING_KNOWN))

    def send(self, games):
        """Count those games that are new."""
        new = {each.game_id: each for each in games if each.game_id not in self.known}
        if not new:
            return
        latest = max((share.game.ended_at for share in self.known.values()), default=None)
        change, added = progress.with_new_games(self.name, [*new.values()], latest, self.saved(), NOW)
        self.payload = change.payload
        self.known |= {share.game.game_id: share for share in added.shares}

    def push(self, session, counts):
        saved = self.saved(session)
        pushed = read_pushed(encode(payload_of(counts))).document
        change = progress.pushed(self.name, pushed, saved, NOW)
        self.payload = change.payload
        self.sessions[session] = saved.known.after(counts_of(pushed.payload), change.counts, change.basis)
        return change.counts

    def pull(self, session):
        """Remember the stored counts as known to the session, and return them."""
        counts = self.saved().counts
        known = self.sessions.get(session, NOTHING_KNOWN)
        self.sessions[session] = known._replace(answers=(*known.answers, counts))
        return counts

    def join(self, guest):
        both = guest.known.keys() & self.known.keys()
        shared = sum_of(guest.known[each] for each in both)
        if guest.payload is not None:
            self.payload = progress.joining(self.name, guest.payload, self.saved(), shared, NOW).payload
        self.known = guest.known | self.known


def sum_of(shares):
    """The counts of these games."""
    total = NO_GAMES
    for each, xp in shares:
        won = each.won
        more = GameCounts(
            1, won, won * each.score, xp, won and each.draw_mode == "DrawOne", won and each.draw_mode != "DrawOne",
            won * each.seconds,
        )  # fmt: skip
        total = added(total, map(int, more))
    return total


def added(counts, more):
    return GameCounts(*map(int.__add__, counts, more))


def made(chance, number):
    """A game at a random time."""
    ended_at = NOW - timedelta(seconds=chance.randrange(10**6))
    sent = game(
        game_id=f"00000000-0000-4000-8000-{number:012}",
        won=chance.random() < 0.6,
        score=chance.randrange(700),
        seconds=chance.randrange(40, 900),
        draw_mode=chance.choice(("DrawOne", "DrawThree")),
        undone=chance.random() < 0.5,
        mode=chance.choice(("Classic", "Zen", "TimeAttack")),
        ended_at=ended_at.isoformat(),
    )
    return read_game(Raw(msgspec.json.encode(sent)))


def counted(account):
    stats = read_stored(account.payload).payload.stats
    return tuple(getattr(stats, name) for name in SIX)


@pytest.mark.parametrize("histories", HISTORIES)
def test_histories_by_ids_alone_are_the_truth(figure, histories):
    chance, number = random.Random(20261128), 0
    for _ in range(histories):
        account, guest = Account(NAME), Account(GUEST)
        played, devices = [], [[], [], []]
        for _ in range(chance.randrange(2, 9)):
            number += 1
            played.append(made(chance, number))
            chance.choice(devices).append(played[-1])
            if chance.random() < 0.6:
                device = chance.choice(devices)
                chance.choice((account, account, guest)).send(chance.sample(device, chance.randint(0, len(device))))
        if chance.random() < 0.5:
            account.join(guest)
        for device in devices:
            account.send(device)
        truth = sum_of((each, 0) for each in played)
        assert counted(account) == tuple(getattr(truth, name) for name in SIX)
    figure(f"{histories:,} histories, {number:,} games: all counters are exact")


@pytest.mark.parametrize("histories", HISTORIES)
@pytest.mark.parametrize("takes_up", [True, False])
def test_histories_beside_totals_are_never_above_the_truth(figure, takes_up, histories):
    """One device sends games, and two push totals; these take up answers, or keep only their own games."""
    chance, number, exact = random.Random(20261129), 0, 0
    for _ in range(histories):
        account, truth, sent = Account(NAME), NO_GAMES, []
        devices = {"one": Device(), "two": Device()}
        for _ in range(chance.randrange(2, 9)):
            number += 1
            each = made(chance, number)
            session = chance.choice((None, "one", "two"))
            if session is None:
                sent.append(each)
                truth = added(truth, sum_of([(each, 0)]))
                if chance.random() < 0.7:
                    account.send(sent)
                continue
            device, before = devices[session], devices[session].counts
            if takes_up and session not in account.sessions and account.payload is not None:
                device.take_up(account.pull(session))
                before = device.counts
            device.play({"won": each.won, "score": each.score, "seconds": each.seconds})
            truth = added(truth, GameCounts(*map(int.__sub__, device.counts, before)))
            if chance.random() < 0.8:
                answer = account.push(session, device.pushes())
                if takes_up and chance.random() < 0.9:  # else the answer is lost
                    device.counts = answer
        account.send(sent)
        for session, device in devices.items():
            account.push(session, device.pushes())
        stats = read_stored(account.payload).payload.stats
        found = tuple(getattr(stats, name) for name in SIX)
        most = tuple(getattr(truth, name) for name in SIX)
        assert all(map(int.__le__, found, most)), (found, most)
        least = max(len(sent), *(device.counts.games_played for device in devices.values()))
        assert stats.games_played >= least
        exact += found == most
    figure(f"{histories:,} histories beside totals: none above the truth, {exact:,} exact")
