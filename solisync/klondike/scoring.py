"""The points of moves under each ruleset. A score never falls below 0; in mode Zen it is always 0."""

from dataclasses import dataclass

from .rules import FOUNDATIONS, STOCK_CLICK, WASTE, Move, MoveEvent

CARD_HOME = 10
WASTE_TO_COLUMN = 5
UNDO_PENALTY = 15
STEP = 5
"""Every score is a multiple of this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruleset:
    """The rules and points of the game since a release, named by the date of the release."""

    name: str
    lenient: bool
    """Whether an ace may go from foundation to foundation, and a run from the waste to a column."""
    foundation_to_column: int
    card_turned_up: int
    fines: dict[int, tuple[int, int]]
    """For each number of drawn cards: the free turns of the waste, and the fine for each further turn."""

    def points(self, move: Move, event: MoveEvent) -> int:
        """The points of an accepted move, without a fine."""
        if move == STOCK_CLICK:
            return 0
        points = self.card_turned_up if event is MoveEvent.CARD_TURNED_UP else 0
        if move.target in FOUNDATIONS:
            return points + CARD_HOME
        if move.source == WASTE:
            return points + WASTE_TO_COLUMN
        if move.source in FOUNDATIONS:
            return points + self.foundation_to_column
        return points

    def fine(self, draw: int, turns: int) -> int:
        """The points for turning the waste over for the `turns`-th time: 0 or less."""
        free, fine = self.fines[draw]
        return -fine if turns > free else 0


MAY_19 = Ruleset(
    name="2026-05-19",
    lenient=False,
    foundation_to_column=-15,
    card_turned_up=5,
    fines={1: (1, 100), 3: (3, 20)},
)
MAY_1 = Ruleset(
    name="2026-05-01",
    lenient=True,
    foundation_to_column=0,
    card_turned_up=0,
    fines={1: (0, 0), 3: (0, 0)},
)
PREFERRED, OLDER = RULESETS = (MAY_19, MAY_1)
"""If both rulesets fit a game, the verdict names the preferred one. Only games under that one are ranked."""
