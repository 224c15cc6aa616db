"""A search for a win of a deal. It sees all cards, and its result depends only on the deal and on its budget."""

from collections.abc import Iterable
from typing import NamedTuple

from .deal import deal
from .game import Game
from .recording import DRAWS
from .rules import (
    COLUMNS,
    FACE_DOWN,
    FOUNDATIONS,
    LIES_ON,
    STOCK,
    STOCK_CLICK,
    SUIT_CARDS,
    WASTE,
    Board,
    Move,
    is_won,
    play,
)
from .scoring import PREFERRED

BUDGET = 4_000
"""The most positions that a search visits. Nine in ten of the wins that it finds need fewer than 600."""

_KING = SUIT_CARDS - 1

Moves = tuple[Move, ...]


class Win(NamedTuple):
    """The moves of a won game, and its score."""

    moves: Moves
    score: int


def find_win(seed: int, draw_mode: str, budget: int = BUDGET) -> Win | None:
    """Search for a win of a deal, and play it. None doesn't prove that there is no win."""
    draw = DRAWS[draw_mode]
    moves = _Search(draw).win(deal(seed), budget)
    if moves is None:
        return None
    game = Game(deal(seed), PREFERRED, draw=draw)
    if not all(map(game.play, moves)) or not game.won:
        raise AssertionError(f"the moves found for deal {seed}, {draw_mode} don't win")
    return Win(moves, game.score)


class _Step(NamedTuple):
    """The moves to a position, and the step to the position before them."""

    moves: Moves
    before: "_Step | None"


class _Search:
    """A depth-first search that visits each position once.

    It moves parts of runs only to free a card for a foundation, so it doesn't find every win.
    """

    def __init__(self, draw: int) -> None:
        self._draw = draw
        self._within_reach: dict[tuple[bytes, bytes], list[tuple[int, int]]] = {}

    def win(self, first: Board, budget: int) -> Moves | None:
        visited = {self._position(first)}
        waiting: list[tuple[Board, _Step | None]] = [(first, None)]
        while waiting and len(visited) < budget:
            board, before = waiting.pop()
            found = []
            for moves in self._continuations(board):
                after = self._after(board, moves)
                position = self._position(after)
                if position in visited:
                    continue
                visited.add(position)
                step = _Step(moves, before)
                if is_won(after):
                    return _all_moves(step)
                found.append((after, step))
            waiting += reversed(found)
        return None

    def _position(self, board: Board) -> tuple[bytes, ...]:
        """The board without the order of its columns, and without the foundations, which hold all other cards.

        If each click draws one card, the cards between stock and waste have no position either: clicks reach them all.
        """
        columns = sorted(board[COLUMNS.start : COLUMNS.stop])
        if self._draw == 1:
            return (*columns, board[WASTE] + board[STOCK][::-1])
        return (*columns, board[STOCK], board[WASTE])

    def _after(self, board: Board, moves: Moves) -> Board:
        for move in moves:
            played = play(board, move, self._draw, lenient=False)
            assert played is not None
            board = played.board
        return board

    def _continuations(self, board: Board) -> Iterable[Moves]:
        """The next moves to try, best first. A safe move is the only one."""
        tops = {board[pile][-1]: pile for pile in COLUMNS if board[pile]}
        heights = [len(board[pile]) for pile in FOUNDATIONS]
        empty = [pile for pile in COLUMNS if not board[pile]][:1]

        def columns_for(card: int) -> list[int]:
            return empty if card % SUIT_CARDS == _KING else [tops[below] for below in LIES_ON[card] if below in tops]

        def fits_foundation(card: int) -> bool:
            return heights[card // SUIT_CARDS] == card % SUIT_CARDS

        best: list[Moves] = []
        rest: list[Moves] = []
        for card, pile in tops.items():
            if fits_foundation(card):
                home = (Move(pile, card // SUIT_CARDS, 1),)
                if _is_safe(card, heights):
                    return [home]
                best.append(home)
        for pile in COLUMNS:
            column = board[pile]
            face_up = [card for card in column if card < FACE_DOWN]
            hidden = len(column) - len(face_up)
            for size, card in enumerate(reversed(face_up), 1):
                if size == len(face_up):
                    if hidden or card % SUIT_CARDS != _KING:
                        (best if hidden else rest).extend((Move(pile, to, size),) for to in columns_for(card))
                elif fits_foundation(freed := face_up[-size - 1]):
                    then = Move(pile, freed // SUIT_CARDS, 1)
                    best += [(Move(pile, to, size), then) for to in columns_for(card)]
        for card, clicks in self._reachable(board):
            targets = columns_for(card)
            if fits_foundation(card):
                targets = [card // SUIT_CARDS, *targets]
            best += [(STOCK_CLICK,) * clicks + (Move(WASTE, to, 1),) for to in targets]
        for suit, height in enumerate(heights):
            if 1 < height < SUIT_CARDS:
                rest += [(Move(suit, to, 1),) for to in columns_for(SUIT_CARDS * suit + height - 1)]
        return best + rest

    def _reachable(self, board: Board) -> list[tuple[int, int]]:
        """The cards that clicks on the stock bring to the top of the waste, each with the number of clicks."""
        start = board[STOCK], board[WASTE]
        if start not in self._within_reach:
            clicks: dict[tuple[bytes, bytes], int] = {}  # of each stock and waste
            while (talon := (board[STOCK], board[WASTE])) not in clicks and any(talon):
                clicks[talon] = len(clicks)
                board = self._after(board, (STOCK_CLICK,))
            self._within_reach[start] = [(waste[-1], number) for (_, waste), number in clicks.items() if waste]
        return self._within_reach[start]


def _is_safe(card: int, heights: list[int]) -> bool:
    """Whether the cards that could lie on this one in a column are on their foundations."""
    suit, rank = divmod(card, SUIT_CARDS)
    return all(heights[other] >= rank for other in FOUNDATIONS if other not in (suit, 3 - suit))


def _all_moves(last: _Step) -> Moves:
    steps: list[Moves] = []
    step: _Step | None = last
    while step:
        steps.append(step.moves)
        step = step.before
    return tuple(move for moves in reversed(steps) for move in moves)
