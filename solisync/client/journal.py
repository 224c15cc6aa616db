"""The journal of a device: finished games that the service hasn't counted yet, and won games to upload.

docs/sync.md "A journal of totals" has the rules, docs/clients.md an example.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec
from msgspec import Struct, field, structs

from ..rules.shapes import NIL
from ..rules.sync import Payload, Stats


class FinishedGame(Struct, frozen=True, kw_only=True):
    """A finished game; `game_id` is a UUID that the game got when it began."""

    game_id: str
    won: bool
    score: int
    seconds: int
    draw_mode: str


class SentPush(Struct, frozen=True):
    """A push without an answer: its bytes, and how many of the journal's games it has."""

    body: str
    games: int


class WonReplay(Struct, frozen=True):
    """An upload without an answer, as the bytes to send each time."""

    game_id: str
    body: str


class Journal(Struct, kw_only=True):
    """The unsent games of a player, and `base`, the progress in the last answer."""

    base: Payload | None = None
    games: list[FinishedGame] = field(default_factory=list)
    sent: SentPush | None = None
    wins: list[WonReplay] = field(default_factory=list)

    def answered(self, merged: Payload) -> None:
        """Continue from the answer of a pull, or of the push that was sent."""
        if self.sent is not None:
            del self.games[: self.sent.games]
        self.sent, self.base = None, merged


AddGame = Callable[[Payload, FinishedGame], Payload]


def next_push(journal: Journal, add: AddGame, now: datetime) -> SentPush:
    """Return the push of all games of a journal that has a base."""
    assert journal.base is not None
    payload = progress_with(journal, add)
    stamped = structs.replace(
        payload,
        user_id=NIL,
        stats=structs.replace(payload.stats, last_modified=now),
        progress=structs.replace(payload.progress, last_modified=now),
        last_modified=now,
    )
    return SentPush(msgspec.json.encode(stamped).decode(), len(journal.games))


def progress_with(journal: Journal, add: AddGame) -> Payload:
    """Return the progress of the last answer together with all games since then."""
    assert journal.base is not None
    payload = journal.base
    for game in journal.games:
        payload = add(payload, game)
    return payload


def add_game(payload: Payload, game: FinishedGame) -> Payload:
    """Return the progress with one more game of mode Classic in its statistics.

    Experience, goals and achievements are the game's own: `add` of Device replaces this function.
    """
    return structs.replace(payload, stats=_won(payload.stats, game) if game.won else _lost(payload.stats))


def _lost(stats: Stats) -> Stats:
    return structs.replace(
        stats, games_played=stats.games_played + 1, games_lost=stats.games_lost + 1, win_streak_current=0
    )


def _won(stats: Stats, game: FinishedGame) -> Stats:
    streak, wins = stats.win_streak_current + 1, stats.games_won + 1
    by_mode = "draw_one_wins" if game.draw_mode == "DrawOne" else "draw_three_wins"
    changes = {
        "games_played": stats.games_played + 1,
        "games_won": wins,
        "win_streak_current": streak,
        "win_streak_best": max(stats.win_streak_best, streak),
        "avg_time_seconds": (stats.avg_time_seconds * stats.games_won + game.seconds) // wins,
        "fastest_win_seconds": min(stats.fastest_win_seconds, game.seconds),
        "lifetime_score": stats.lifetime_score + game.score,
        "best_single_score": max(stats.best_single_score, game.score),
        "classic_best_score": max(stats.classic_best_score, game.score),
        "classic_fastest_win_seconds": min(stats.classic_fastest_win_seconds or game.seconds, game.seconds),
        by_mode: getattr(stats, by_mode) + 1,
    }
    return structs.replace(stats, **changes)
