"""The rules of Klondike: boards, moves, and the board after a move."""

from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

FACE_DOWN = 64  # added to the id of a face-down card in a column

FOUNDATIONS = range(4)
COLUMNS = range(4, 11)
STOCK = 11
WASTE = 12
PILE_NAMES = ("f0", "f1", "f2", "f3", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "s", "w")
SUIT_NAMES = ("clubs", "diamonds", "hearts", "spades")
RANK_NAMES = ("ace", "2", "3", "4", "5", "6", "7", "8", "9", "10", "jack", "queen", "king")
SUIT_CARDS = len(RANK_NAMES)
STOCK_CARDS = 24

Board = tuple[bytes, ...]
"""The 13 piles in the order of PILE_NAMES, each from bottom to top; cards of the stock have no FACE_DOWN."""


def card_text(card: int) -> str:
    """The name of a card, which may be face down: `7 of hearts`."""
    suit, rank = divmod(card % FACE_DOWN, SUIT_CARDS)
    return f"{RANK_NAMES[rank]} of {SUIT_NAMES[suit]}"


class Move(NamedTuple):
    """A player's move: a number of cards from the top of one pile to another (indices of a board), or STOCK_CLICK."""

    source: int
    target: int
    size: int


# A click on the stock draws cards, or turns the waste over if the stock is empty. It isn't represented by a pair of
# piles, because a recorded move from stock to waste is a different move, and never legal.
STOCK_CLICK = Move(-1, -1, 0)


class MoveEvent(IntEnum):
    """A side effect of a move."""

    NONE = 0
    CARD_TURNED_UP = 1  # in the column that the cards were taken from
    WASTE_TURNED_OVER = 2


class Played(NamedTuple):
    """The result of an accepted move: the board and the event."""

    board: Board
    event: MoveEvent


def _colour(card: int) -> bool:
    return card // SUIT_CARDS in (1, 2)


LIES_ON = tuple(
    tuple(
        below
        for below in range(52)
        if below % SUIT_CARDS == above % SUIT_CARDS + 1 and _colour(below) != _colour(above)
    )
    for above in range(52)
)
"""For each card, the cards that it may lie on in a column: two, or none for a king."""

_DESCENDING = frozenset((below, above) for above in range(52) for below in LIES_ON[above])


def play(board: Board, move: Move, draw: int, *, lenient: bool) -> Played | None:
    """Make a move; return None if it is refused. `draw` is the number of cards that a click on the stock deals, 1 or 3.

    `lenient` allows two moves of ruleset 2026-05-01: an ace from foundation to foundation, and a run from the waste.
    """
    if move is STOCK_CLICK:
        return _click(board, draw)
    source, target, size = move
    if source in (target, STOCK) or target >= STOCK or not 0 < size <= len(board[source]):
        return None
    cards = board[source][-size:]
    if target in FOUNDATIONS:
        accepted = size == 1 and _builds(board[target], cards[0]) and (lenient or source not in FOUNDATIONS)
    else:
        accepted = (size == 1 or lenient or source != WASTE) and _fits(board[target], cards)
    if not accepted:
        return None
    piles = list(board)
    rest = board[source][:-size]
    event = MoveEvent.NONE
    if rest and rest[-1] >= FACE_DOWN:
        rest = rest[:-1] + bytes([rest[-1] - FACE_DOWN])
        event = MoveEvent.CARD_TURNED_UP
    piles[source] = rest
    piles[target] += cards
    return Played(tuple(piles), event)


def can_be_legal(move: Move) -> bool:
    """Whether any board of either ruleset accepts a move."""
    if move == STOCK_CLICK:
        return True
    source, target, size = move
    takes_runs = source not in FOUNDATIONS and target in COLUMNS
    return source not in (target, STOCK) and target < STOCK and 0 < size <= (SUIT_CARDS if takes_runs else 1)


def needs_leniency(move: Move) -> bool:
    """Whether only the lenient rules can accept a move."""
    source, target, size = move
    return (source in FOUNDATIONS and target in FOUNDATIONS) or (source == WASTE and size > 1)


def is_won(board: Board) -> bool:
    """Whether each foundation is complete."""
    return len(board[0]) == len(board[1]) == len(board[2]) == len(board[3]) == SUIT_CARDS


def _click(board: Board, draw: int) -> Played | None:
    stock, waste = board[STOCK], board[WASTE]
    if stock:
        return Played((*board[:STOCK], stock[:-draw], waste + stock[-draw:]), MoveEvent.NONE)
    if waste:
        return Played((*board[:STOCK], waste[::-1], b""), MoveEvent.WASTE_TURNED_OVER)
    return None


def _builds(foundation: bytes, card: int) -> bool:
    """Whether a foundation takes a card."""
    if not foundation:
        return card % SUIT_CARDS == 0
    return card == foundation[-1] + 1 and card % SUIT_CARDS > 0


def _fits(column: bytes, cards: bytes) -> bool:
    """Whether a column takes these cards, a face-up run; the last card of a column is always face up."""
    if column:
        cards = column[-1:] + cards
    elif cards[0] % SUIT_CARDS != SUIT_CARDS - 1 or cards[0] >= FACE_DOWN:
        return False
    return all(pair in _DESCENDING for pair in pairwise(cards))
