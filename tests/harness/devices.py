"""Simulated devices of one player, and the games that were really played."""

from dataclasses import dataclass, field

from solisync.rules.counting import NO_GAMES, GameCounts
from tests.harness.payloads import progress_of


def play(counts, *, won, score, seconds):
    """Add one game to these counts."""
    return GameCounts(
        counts.games_played + 1,
        counts.games_won + won,
        counts.lifetime_score + score,
        counts.total_xp + 10 * won + 1,
        counts.draw_one_wins + (won and score % 2),
        counts.draw_three_wins + (won and 1 - score % 2),
        counts.time + won * seconds,
    )


def sum_of(state, new):
    """Add games, as a difference of two other states, to a state."""
    return GameCounts(*map(int.__add__, state, new))


def games_since(counts, base):
    """The games by which a state differs from an earlier one; rounded averages may hide some time."""
    return GameCounts(*(max(mine - its, 0) for mine, its in zip(counts, base, strict=True)))


@dataclass
class Device:
    """A device: all of its games, and the synced ones."""

    counts: GameCounts = NO_GAMES
    synced: GameCounts = NO_GAMES

    def play(self, game):
        """Finish a game."""
        self.counts = play(self.counts, **game)

    def pushes(self):
        """The counts that the device pushes, whose average is rounded down."""
        counts = self.counts
        return counts._replace(time=counts.games_won and counts.time // counts.games_won * counts.games_won)

    def take_up(self, answer):
        """Continue from an answer, with the games that have not been synced."""
        self.counts, self.synced = sum_of(answer, games_since(self.counts, self.synced)), answer

    def take_maximum(self, answer):
        """Keep the greater counters, and the time of the side with more wins, like a simpler client."""
        time = max(self.counts, answer, key=lambda counts: (counts.games_won, counts.time)).time
        self.counts = GameCounts(*map(max, self.counts[:6], answer[:6]), time)


@dataclass
class Truth:
    """The games that were really played."""

    counts: GameCounts = NO_GAMES
    seconds: list = field(default_factory=list)

    def play(self, game):
        """Count a game."""
        self.counts = play(self.counts, **game)
        if game["won"]:
            self.seconds.append(game["seconds"])

    def check(self, counts):
        """Check that a stored state has no game that was not played, and a possible average."""
        assert all(stored <= true for stored, true in zip(counts[:6], self.counts[:6], strict=True)), (counts, self)
        assert counts.games_won <= counts.games_played
        if counts.games_won:
            assert min(self.seconds) <= counts.time // counts.games_won <= max(self.seconds), (counts, self)


def payload_of(counts):
    """A payload with these counts."""
    return progress_of(
        stats__games_played=counts.games_played,
        stats__games_won=counts.games_won,
        stats__lifetime_score=counts.lifetime_score,
        stats__draw_one_wins=counts.draw_one_wins,
        stats__draw_three_wins=counts.draw_three_wins,
        stats__avg_time_seconds=counts.time // max(counts.games_won, 1),
        progress__total_xp=counts.total_xp,
    )


def counts_in(answer):
    """The counts in the answer of a pull or push."""
    stats, progress = answer["merged"]["stats"], answer["merged"]["progress"]
    assert stats["games_lost"] == stats["games_played"] - stats["games_won"]
    return GameCounts(
        stats["games_played"],
        stats["games_won"],
        stats["lifetime_score"],
        progress["total_xp"],
        stats["draw_one_wins"],
        stats["draw_three_wins"],
        stats["games_won"] * stats["avg_time_seconds"],
    )
