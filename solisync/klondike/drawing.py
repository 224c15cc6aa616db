"""Boards and steps as text, for people at a terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from .deal import deal
from .game import Game
from .recording import Recording
from .rules import COLUMNS, FACE_DOWN, FOUNDATIONS, PILE_NAMES, STOCK, STOCK_CLICK, SUIT_CARDS, WASTE, Board, Move
from .scoring import RULESETS

_RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
_SUITS = "♣♦♥♠"
_HIDDEN = "··"
_NONE = "--"
_WIDTH = 5


def card_name(card: int) -> str:
    """The name of a card, such as `10♥` for id 35; dots for a face-down card."""
    if card >= FACE_DOWN:
        return _HIDDEN
    suit, rank = divmod(card, SUIT_CARDS)
    return _RANKS[rank] + _SUITS[suit]


def draw_board(board: Board) -> str:
    """A board as text: stock and waste (bottom to top), the foundations, and the columns under their names."""
    tops = " ".join(card_name(board[pile][-1]) if board[pile] else _NONE for pile in FOUNDATIONS)
    waste = " ".join(map(card_name, board[WASTE])) or _NONE
    lines = [f"foundations {tops}", f"stock {len(board[STOCK])}, waste {waste}"]
    lines.append(_row([PILE_NAMES[pile] for pile in COLUMNS]))
    for row in zip_longest(*(board[pile] for pile in COLUMNS)):
        lines.append(_row(["" if card is None else card_name(card) for card in row]))
    return "\n".join(lines)


def draw_game(recording: Recording, ruleset_name: str | None, undo_places: Sequence[int]) -> Iterator[str]:
    """Yield the deal, and the board after each step up to the first illegal move.

    `undo_places` has the recorded move that follows each undo. Without a ruleset, the preferred one applies.
    """
    ruleset = next((ruleset for ruleset in RULESETS if ruleset.name == ruleset_name), RULESETS[0])
    game = Game(deal(recording.seed), ruleset, draw=recording.draw, zen=recording.is_zen)
    undos = Counter(undo_places)
    yield f"deal {recording.seed}\n{draw_board(game.board)}"
    for place, move in enumerate(recording.moves):
        for _ in range(undos[place]):
            game.undo()
            yield f"undo, score {game.score}\n{draw_board(game.board)}"
        title = f"move {place + 1}: {_move_text(move)}"
        if game.play(move) is None:
            yield f"{title} is refused"
            return
        yield f"{title}, score {game.score}\n{draw_board(game.board)}"


def _move_text(move: Move) -> str:
    if move == STOCK_CLICK:
        return "stock"
    return f"{move.size} from {PILE_NAMES[move.source]} to {PILE_NAMES[move.target]}"


def _row(cells: list[str]) -> str:
    return "".join(cell.ljust(_WIDTH) for cell in cells).rstrip()
