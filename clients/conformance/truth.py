"""The games that were really played, and the comparison with what the service has stored."""

import itertools
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPLAYS = Path(__file__).resolve().parents[2] / "docs" / "replays"
WON = ("won_draw_one", "won_draw_three", "won_with_undo_places", "seed_as_text")
COUNTED = ("games_played", "games_won", "games_lost", "lifetime_score", "draw_one_wins", "draw_three_wins")
BESTS = ("best_single_score", "fastest_win_seconds")
NEVER = 18446744073709551615  # the fastest win of a player without wins; doubles round it


class Games:
    """A source of games, whose ids are the same in each run."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._replays = [json.loads((REPLAYS / f"{name}.json").read_text("utf-8")) for name in WON]

    def won(self) -> dict[str, Any]:
        """Return the next won game, with the replay to upload."""
        number = next(self._numbers)
        replay = self._replays[number % len(self._replays)] | {"time_seconds": 100 + number % 97}
        return {
            "game_id": f"00000000-0000-4000-8000-{number:012x}",
            "won": True,
            "score": replay["final_score"],
            "seconds": replay["time_seconds"],
            "draw_mode": replay["draw_mode"],
            "replay": replay,
        }

    def lost(self) -> dict[str, Any]:
        """Return the next lost game."""
        number = next(self._numbers)
        return {
            "game_id": f"00000000-0000-4000-8000-{number:012x}",
            "won": False,
            "score": 5 * (number % 20),
            "seconds": 30 + number % 50,
            "draw_mode": ("DrawOne", "DrawThree")[number % 2],
            "replay": None,
        }


@dataclass
class Truth:
    """The games of an account."""

    games: list[dict[str, Any]] = field(default_factory=list)

    def totals(self) -> dict[str, int]:
        """Return the numbers that the service should have stored."""
        won = [game for game in self.games if game["won"]]
        modes = Counter(game["draw_mode"] for game in won)
        return {
            "games_played": len(self.games),
            "games_won": len(won),
            "games_lost": len(self.games) - len(won),
            "lifetime_score": sum(game["score"] for game in won),
            "draw_one_wins": modes["DrawOne"],
            "draw_three_wins": modes["DrawThree"],
            "best_single_score": max((game["score"] for game in won), default=0),
            "fastest_win_seconds": min((game["seconds"] for game in won), default=NEVER),
        }


def stored_totals(export: dict[str, Any]) -> dict[str, int]:
    """Return the numbers in an export of all that the service has stored about a player."""
    if export["progress"] is None:
        return Truth().totals()
    stats = export["progress"]["stats"]
    return {name: stats[name] for name in (*COUNTED, *BESTS)}


def stored_replays(export: dict[str, Any]) -> Counter[str]:
    """Return how many replays the service has stored for each game."""
    return Counter(replay["body"].get("game_id", "without game_id") for replay in export["replays"])


def differences(expected: dict[str, int], found: dict[str, int]) -> list[str]:
    """Return in words how the numbers differ."""

    def equal(name: str) -> bool:
        if name == "fastest_win_seconds" and expected[name] == NEVER:
            return found[name] is None or found[name] >= NEVER - 10_000  # as a double
        return found[name] == expected[name]

    return [f"{name} is {found[name]} instead of {expected[name]}" for name in expected if not equal(name)]
