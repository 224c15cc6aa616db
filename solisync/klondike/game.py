"""A running game: a board with its score, and the moves that can be undone."""

from collections import deque
from typing import NamedTuple

from .rules import STOCK_CLICK, Board, Move, MoveEvent, Played, is_won, play
from .scoring import UNDO_PENALTY, Ruleset

UNDO_DEPTH = 64


class _Before(NamedTuple):
    board: Board
    score: int
    moves: int


class Game:
    """A game that starts at a board. With `zen` it scores nothing; without `undo` it refuses undos.

    `turns` counts the turns of the waste. As in the players' game, an undo doesn't change that number.
    """

    def __init__(self, board: Board, ruleset: Ruleset, *, draw: int, zen: bool = False, undo: bool = True) -> None:
        self.board = board
        self.ruleset = ruleset
        self.score = 0
        self.moves = 0
        self.turns = 0
        self.won = is_won(board)
        self._draw = draw
        self._zen = zen
        self._history: deque[_Before] = deque(maxlen=UNDO_DEPTH if undo else 0)

    def play(self, move: Move) -> Played | None:
        """Make a move; return None and change nothing if the move is refused."""
        played = None if self.won else play(self.board, move, self._draw, lenient=self.ruleset.lenient)
        if played is None:
            return None
        self._history.append(_Before(self.board, self.score, self.moves))
        points = self.ruleset.points(move, played.event)
        if played.event is MoveEvent.WASTE_TURNED_OVER:
            self.turns += 1
            points = self.ruleset.fine(self._draw, self.turns)
        self._set_score(self.score + points)
        self.board = played.board
        self.moves += 1
        self.won = move != STOCK_CLICK and is_won(played.board)
        return played

    def undo(self) -> bool:
        """Undo the last move; return False if there is none, or the game is won."""
        if self.won or not self._history:
            return False
        self.board, score, self.moves = self._history.pop()
        self._set_score(score - UNDO_PENALTY)
        return True

    def _set_score(self, score: int) -> None:
        self.score = 0 if self._zen else max(0, score)
