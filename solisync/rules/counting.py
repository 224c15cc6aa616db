"""Counting games across devices: docs/sync.md "How games are counted".

Taking the higher of two counters loses games: two devices that play 5 and 7 more from a common 100 end at 107. The
server knows what each session's device had, so it adds only new games: 100, 105, 112.

The server doesn't know exactly what a device had. The device certainly had what it pushed last (`Known.pushed`). Each
answer that was sent since then (`Known.answers`) may have arrived or not. A device that has taken up an answer pushes
at least its counts. So if a push reaches an answer, the server takes everything in that answer as known, and doesn't
count it again.

This may count too little, if a device has reached an answer by its own games without having received it. It never
counts too much, on two conditions: every answer is remembered until a push has covered it, and all progress of a device
travels through this server, by one session at a time.
"""

from enum import Enum
from functools import reduce
from typing import NamedTuple

import msgspec
from msgspec import structs

from .merge import level
from .shapes import U32_MAX, U64_MAX
from .sync import Document, Payload

MOST_ANSWERS = 16


class GameCounts(NamedTuple):
    """The counters of a payload that are added up; `time` is the seconds of all won games, from their average."""

    games_played: int
    games_won: int
    lifetime_score: int
    total_xp: int
    draw_one_wins: int
    draw_three_wins: int
    time: int

    def reaches(self, other: "GameCounts") -> bool:
        """Return whether each counter that merging never lowers is at least the other's."""
        return (
            self.games_played >= other.games_played
            and self.games_won >= other.games_won
            and self.lifetime_score >= other.lifetime_score
            and self.total_xp >= other.total_xp
        )

    def with_most_draws(self, other: "GameCounts") -> "GameCounts":
        """The counts with the greater wins of each draw mode, which merging may lower but a device may keep."""
        *rest, one, three, time = self
        most = max(one, other.draw_one_wins), max(three, other.draw_three_wins)
        return GameCounts._make((*rest, *most, time))

    def without(self, other: "GameCounts") -> "GameCounts":
        """The counts less those of some of the games."""
        return GameCounts(*[max(mine - its, 0) for mine, its in zip(self, other, strict=True)])

    def encode(self) -> str:
        """The counts as JSON; equal counts have equal bytes."""
        return _encode(self).decode()


class Known(NamedTuple):
    """The known states of a session's device: what it `pushed` last, if that is reliable, and answers since then."""

    pushed: GameCounts | None
    answers: tuple[GameCounts, ...]

    def after(self, pushed: GameCounts, answer: GameCounts, basis: "Basis") -> "Known":
        """The state after a push was merged on this basis and answered; a stale push adds only its answer.

        A push that was merged by MAXIMUM and lacks games of its answer may be late. Its device may have pushed more
        before. Only the answer is certain to have those games.
        """
        if basis is Basis.MAXIMUM and not pushed.reaches(answer):
            return Known(None, (answer,))
        if basis is Basis.STALE:
            answers = self.answers if answer in self.answers else (*self.answers, answer)
            known = Known(self.pushed, answers)
        else:
            rest = (each for each in self.answers if not pushed.reaches(each))
            known = Known(reduce(GameCounts.with_most_draws, self.reached_by(pushed), pushed), (*rest, answer))
        return known if len(known.answers) <= MOST_ANSWERS else Known(None, (answer,))

    def reached_by(self, pushed: GameCounts) -> list[GameCounts]:
        """The known states that the device of a push had."""
        return [each for each in (self.pushed, *self.answers) if each is not None and pushed.reaches(each)]


NOTHING_KNOWN = Known(None, ())
NO_GAMES = GameCounts(0, 0, 0, 0, 0, 0, 0)

_MOST = (U32_MAX, U32_MAX, U64_MAX, U64_MAX, U32_MAX, U32_MAX)
_encode = msgspec.json.Encoder().encode


class Basis(Enum):
    """How the games of a push were merged.

    COUNTED: by adding differences. MAXIMUM: by the higher counter. STALE: by the higher counter, because the push is
    late.
    """

    COUNTED = "counted"
    MAXIMUM = "maximum"
    STALE = "stale"


def counts_of(payload: Payload) -> GameCounts:
    """The counters of a payload."""
    stats = payload.stats
    return GameCounts(
        games_played=stats.games_played,
        games_won=stats.games_won,
        lifetime_score=stats.lifetime_score,
        total_xp=payload.progress.total_xp,
        draw_one_wins=stats.draw_one_wins,
        draw_three_wins=stats.draw_three_wins,
        time=stats.games_won * stats.avg_time_seconds,
    )


class Sum(NamedTuple):
    """How the games of a push were merged, and the sum; `counts` have no meaning unless `basis` is COUNTED.

    `had` is the known part of what the device had before its new games.
    """

    basis: Basis
    counts: GameCounts
    had: GameCounts

    def had_all_of(self, sent: GameCounts) -> bool:
        """Return whether the device had all games of the stored document, whose counts sessions received as `sent`."""
        return self.basis is Basis.COUNTED and self.had[:6] == sent[:6]


def add(pushed: GameCounts, stored: GameCounts, known: Known) -> Sum:
    """Add the new games of a push to the stored counts."""
    if known.pushed is not None and not pushed.reaches(known.pushed):
        return Sum(Basis.STALE, stored, NO_GAMES)
    had = known.reached_by(pushed)
    if not had:
        return Sum(Basis.MAXIMUM, stored, NO_GAMES)
    most = GameCounts(*map(max, had[0], *had))
    new = pushed.without(most)
    if new.draw_one_wins + new.draw_three_wins > new.games_won:  # some were counted before a merge lowered them
        new = new._replace(draw_one_wins=0, draw_three_wins=0)
    six = [
        min(max(before + more, mine), limit)
        for before, more, mine, limit in zip(stored[:6], new[:6], pushed[:6], _MOST, strict=True)
    ]
    base = max(had, key=lambda counts: (counts.games_won, counts.time))
    counts = GameCounts._make((*six, stored.time + max(pushed.time - base.time, 0)))
    if not _is_between(counts, stored, pushed):
        counts = _at_average(counts, stored, pushed)
    return Sum(Basis.COUNTED, counts, most)


def sum_of(one: GameCounts, other: GameCounts) -> GameCounts:
    """Add the counts of two players with different games."""
    six = [min(mine + its, limit) for mine, its, limit in zip(one[:6], other[:6], _MOST, strict=True)]
    return GameCounts._make((*six, one.time + other.time))


def _is_between(counts: GameCounts, one: GameCounts, other: GameCounts) -> bool:
    """Return whether the average time lies between two others, so that no game need have been faster or slower."""
    averages = sorted(each.time // max(each.games_won, 1) for each in (one, other))
    return averages[0] <= counts.time // max(counts.games_won, 1) <= averages[1]


def _at_average(counts: GameCounts, stored: GameCounts, pushed: GameCounts) -> GameCounts:
    """The counts with a time in which the new games took the average of the pushed ones."""
    new = counts.games_won - stored.games_won
    return counts._replace(time=stored.time + new * pushed.time // max(pushed.games_won, 1))


def with_counts(document: Document, counts: GameCounts) -> Document:
    """A merged document with these counts, and the fields that follow from them."""
    payload = document.payload
    won = counts.games_won
    played = max(counts.games_played, won)
    stats = structs.replace(
        payload.stats,
        games_played=played,
        games_won=won,
        games_lost=played - won,
        draw_one_wins=counts.draw_one_wins,
        draw_three_wins=counts.draw_three_wins,
        lifetime_score=counts.lifetime_score,
        avg_time_seconds=min(counts.time // won, U64_MAX) if won else 0,
    )
    progress = structs.replace(payload.progress, total_xp=counts.total_xp, level=level(counts.total_xp))
    return document._replace(payload=structs.replace(payload, stats=stats, progress=progress))
