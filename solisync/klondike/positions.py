"""The boards that the moves of a recording lead to.

A *place* is an index of the recorded moves; the number of moves is the end of the recording.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .rules import (
    COLUMNS,
    FACE_DOWN,
    FOUNDATIONS,
    STOCK,
    STOCK_CARDS,
    SUIT_CARDS,
    WASTE,
    Board,
    Move,
    MoveEvent,
    is_won,
    play,
)


class Position:
    """A board, with facts for the search for undos. Equal boards are the same position."""

    __slots__ = ("away", "board", "face_down", "is_won", "last_chance", "steps", "undealt")

    def __init__(self, board: Board, last_chance: int) -> None:
        self.board = board
        self.last_chance = last_chance
        """The last place after which the recording still moves enough cards to win, or -1 if there is none."""
        self.is_won = is_won(board)
        self.away = SUIT_CARDS * len(FOUNDATIONS) - sum(len(board[pile]) for pile in FOUNDATIONS)
        """The number of cards that aren't on a foundation."""
        self.undealt = len(board[STOCK]) + len(board[WASTE])
        """The number of cards in stock and waste."""
        self.face_down = sum(card >= FACE_DOWN for pile in COLUMNS for card in board[pile])
        """The number of face-down cards in the columns."""
        self.steps: dict[int, Transition | None] = {}


class Transition(NamedTuple):
    """The result of a move: the next position, and an event."""

    position: Position
    event: MoveEvent


class Positions:
    """The positions of a recording, from the first one."""

    def __init__(self, first: Board, moves: Sequence[Move], *, draw: int, lenient: bool) -> None:
        kinds: dict[Move, int] = {}
        self.kinds = [kinds.setdefault(move, len(kinds)) for move in moves]
        """For each place, the index of its move among the different moves."""
        self.moves = list(kinds)
        """The different moves."""
        self.end = len(moves)
        self.draw = draw
        self._lenient = lenient
        self._last_places = _last_places(moves)
        self._positions: dict[Board, Position] = {}
        self.first = self._at(first)

    def step(self, position: Position, place: int) -> Transition | None:
        """Make the move that is recorded at a place; return None if it is refused."""
        steps, kind = position.steps, self.kinds[place]
        if kind not in steps:
            played = play(position.board, self.moves[kind], self.draw, lenient=self._lenient)
            steps[kind] = None if played is None else Transition(self._at(played.board), played.event)
        return steps[kind]

    def _at(self, board: Board) -> Position:
        position = self._positions.get(board)
        if position is None:
            position = self._positions[board] = Position(board, self._last_chance(board))
        return position

    def _last_chance(self, board: Board) -> int:
        last = self._last_places
        foundations = min(last[pile][SUIT_CARDS - len(board[pile])] for pile in FOUNDATIONS)
        columns = min(last[pile][len(board[pile])] for pile in COLUMNS)
        return min(foundations, columns, last[WASTE][len(board[STOCK]) + len(board[WASTE])])


def _last_places(moves: Sequence[Move]) -> list[list[int]]:
    """For each pile and number, the last place after which that many cards go to it (a foundation) or leave it.

    The place is -1 if the recording never moves that many. Stock and waste count as one pile.
    """
    last = [[len(moves)] for _ in range(WASTE + 1)]
    for place in reversed(range(len(moves))):
        source, target, size = moves[place]
        if source not in FOUNDATIONS and source >= 0:
            last[source] += [place] * min(size, STOCK_CARDS + 1 - len(last[source]))
        if target in FOUNDATIONS:
            last[target] += [place] * min(size, STOCK_CARDS + 1 - len(last[target]))
    return [places + [-1] * (STOCK_CARDS + 1 - len(places)) for places in last]
