"""The most that the moves of a replay prove when they are played as recorded: docs/verification.md "Evidence"."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from .deal import deal
from .game import Game
from .recording import Recording, UnreadableError, read_recording
from .rules import COLUMNS, FACE_DOWN, FOUNDATIONS, STOCK, STOCK_CLICK, WASTE, Board, Move, card_text
from .scoring import PREFERRED
from .timeline import STEPS_MAX, played
from .verdict import MOVES_MAX, Status

UNPROVED = (Status.REFUTED, Status.UNDECIDED)
"""The statuses of replays that evidence is for."""


class Proved(Struct, frozen=True):
    """What the moves prove under the preferred ruleset, up to the first illegal one."""

    moves: int
    """The number of legal moves."""
    index: int | None
    """The index of the first illegal move, from 0; None if all moves are legal."""
    input: str | None
    """The illegal move in words."""
    score: int
    """The score after the legal moves."""
    won: bool


class Evidence(NamedTuple):
    """What the moves of a replay prove, and these moves as a timeline in JSON; None if it would be too long."""

    proved: Proved
    timeline: bytes | None


def prove(body: bytes) -> Proved | None:
    """Return what the moves of a replay prove, or None if it is unreadable or too long. Never raises, for any bytes."""
    recording = _playable(body)
    return None if recording is None else _best(recording)[0]


def evidence(body: bytes) -> Evidence | None:
    """Return what the moves of a replay prove, with their timeline, or None if it is unreadable or too long."""
    recording = _playable(body)
    if recording is None:
        return None
    proved, undo_places = _best(recording)
    if proved.moves + len(undo_places) > STEPS_MAX:
        return Evidence(proved, None)
    return Evidence(proved, played(recording, PREFERRED, undo_places)[1])


def in_words(claimed: str, proved: Proved | None) -> str | None:
    """Say how a replay differs from its claim, a score as uploaded; None if nothing is proved."""
    if proved is None:
        return None
    if proved.index is not None:
        return f"move {proved.index + 1:,} is illegal: {proved.input}; the moves before it prove {proved.score:,}"
    return f"claims {_number(claimed)}; its moves prove {proved.score:,}{'' if proved.won else ', and do not win'}"


def _number(spelling: str) -> str:
    """A score as people write it: `1,110` for 1110.0."""
    value = float(spelling)
    return f"{int(value):,}" if value.is_integer() and abs(value) < 1e15 else spelling


def _playable(body: bytes) -> Recording | None:
    """The recording, or None if it is unreadable or has over MOVES_MAX moves, which no check plays."""
    try:
        recording = read_recording(body)
    except UnreadableError:
        return None
    return recording if len(recording.moves) <= MOVES_MAX else None


def _best(recording: Recording) -> tuple[Proved, tuple[int, ...]]:
    """What the moves prove with the undos that the client reports, or without any if more moves are legal then."""
    tried = [(_prove(recording, places), places) for places in dict.fromkeys((recording.undo_places, ()))]
    return max(((proved, places) for proved, places in tried if proved), key=lambda each: each[0].moves)


def _prove(recording: Recording, undo_places: tuple[int, ...]) -> Proved | None:
    """Play the moves up to the first illegal one; None if an undo is impossible."""
    game = Game(deal(recording.seed), PREFERRED, draw=recording.draw, zen=recording.is_zen)
    undos = Counter(undo_places)
    for place, move in enumerate(recording.moves):
        if not all(game.undo() for _ in range(undos[place])):
            return None
        if game.play(move) is None:
            words = "the game is won before it" if game.won else " ".join(_words(game.board, move))
            return Proved(place, place, words, game.score, game.won)
    return Proved(len(recording.moves), None, None, game.score, game.won)


def _words(board: Board, move: Move) -> Iterator[str]:
    """The parts of a sentence for an illegal move: `7 of spades onto 9 of hearts`."""
    if move == STOCK_CLICK:
        yield "a click on the stock, while stock and waste are empty"
        return
    source, target, size = move
    cards = board[source][-size:] if 0 < size <= len(board[source]) else b""
    if not cards:
        yield f"no cards from {_pile(source)}" if size == 0 else f"more cards than {_pile(source)} has"
    elif source != STOCK and cards[0] >= FACE_DOWN:
        yield "a face-down card"
    else:
        yield card_text(cards[0])
    if len(cards) > 1:
        yield f"and {size - 1} more"
    if cards and source not in COLUMNS:
        yield f"from {_pile(source)}"
    if source == target:
        yield "onto its own pile"
    elif target in (STOCK, WASTE):
        yield f"onto {_pile(target)}"
    elif board[target]:
        yield f"onto {card_text(board[target][-1])}" + (" on its foundation" if target in FOUNDATIONS else "")
    else:
        yield f"onto {_pile(target)}, which is empty"


def _pile(pile: int) -> str:
    if pile in FOUNDATIONS:
        return f"foundation {pile - FOUNDATIONS[0] + 1}"
    if pile in COLUMNS:
        return f"column {pile - COLUMNS[0] + 1}"
    return "the stock" if pile == STOCK else "the waste"
