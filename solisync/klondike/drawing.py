"""Boards and steps as text, for people at a terminal."""

from itertools import zip_longest

from .rules import COLUMNS, FACE_DOWN, FOUNDATIONS, PILE_NAMES, STOCK, SUIT_CARDS, WASTE, Board

_RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
_SUITS = "♣♦♥♠"
_HIDDEN = "··"
_NONE = "--"
_WIDTH = 5


def card_name(card: int) -> str:
    """`10♥` for id 35; dots for a card that lies face down."""
    if card >= FACE_DOWN:
        return _HIDDEN
    suit, rank = divmod(card, SUIT_CARDS)
    return _RANKS[rank] + _SUITS[suit]


def draw_board(board: Board) -> str:
    """A board as text: stock and waste, the foundations, and the columns under their names; waste bottom to top."""
    tops = " ".join(card_name(board[pile][-1]) if board[pile] else _NONE for pile in FOUNDATIONS)
    waste = " ".join(map(card_name, board[WASTE])) or _NONE
    lines = [f"foundations {tops}", f"stock {len(board[STOCK])}, waste {waste}"]
    lines.append(_row([PILE_NAMES[pile] for pile in COLUMNS]))
    for row in zip_longest(*(board[pile] for pile in COLUMNS)):
        lines.append(_row(["" if card is None else card_name(card) for card in row]))
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return "".join(cell.ljust(_WIDTH) for cell in cells).rstrip()
