"""The timeline of a verified replay: the deal and every step, so that playback needs no rules."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct, field

from .deal import deal
from .game import Game
from .recording import Recording, read_recording
from .rules import COLUMNS, FACE_DOWN, PILE_NAMES, STOCK, STOCK_CLICK, WASTE, Board, Move, MoveEvent, Played
from .scoring import RULESETS, Ruleset
from .verdict import Verdict

STEPS_MAX = 2_000
"""Games with more steps have no timeline."""


class Deal(Struct, frozen=True):
    """The cards as dealt, each pile from bottom to top; the last card of a column is face up."""

    tableau: list[list[int]]
    stock: list[int]


class TimelineStep(Struct, frozen=True):
    """A move, a click on the stock or an undo; piles are `s`, `w`, `f0`…`f3`, `t0`…`t6`."""

    input: Literal["stock", "move", "undo"]
    source: str = field(name="from")
    target: str = field(name="to")
    cards: list[int]
    """The moved cards, bottom to top in the pile from which the move takes them.

    Turning the waste over puts them on the stock in reverse order. An undo has the cards of the undone move.
    """
    flipped: int | None
    """The card that the move turns up; for an undo, the card that is turned down again."""
    score: int
    """The score after the step."""


class Timeline(Struct, frozen=True, kw_only=True):
    """A complete game, with one step for each move and undo."""

    seed: str
    """The seed as text, because JavaScript rounds large numbers."""
    draw_mode: str
    mode: str
    ruleset: str
    undos: int
    deal: Deal
    steps: list[TimelineStep]


def make_timeline(body: bytes, verdict: Verdict) -> bytes | None:
    """Return the timeline of a replay as JSON, or None if it isn't verified or has over STEPS_MAX steps.

    Raises ValueError if the verdict is on another replay.
    """
    if verdict.ruleset is None or verdict.undos is None:
        return None
    recording = read_recording(body)
    if len(recording.moves) + verdict.undos > STEPS_MAX:
        return None
    (ruleset,) = (ruleset for ruleset in RULESETS if ruleset.name == verdict.ruleset)
    game, timeline = played(recording, ruleset, verdict.undo_places)
    if not game.won or game.score != verdict.score:
        raise ValueError("the verdict is on another replay")
    return timeline


def played(recording: Recording, ruleset: Ruleset, undo_places: Sequence[int]) -> tuple[Game, bytes]:
    """Play a recording with these undos up to the first illegal move; return the game, and its timeline as JSON."""
    first = deal(recording.seed)
    game = Game(first, ruleset, draw=recording.draw, zen=recording.is_zen)
    steps = _steps(recording, game, undo_places)
    timeline = Timeline(
        seed=str(recording.seed),
        draw_mode=recording.draw_mode,
        mode=recording.mode,
        ruleset=ruleset.name,
        undos=sum(step.input == "undo" for step in steps),
        deal=_dealt(first),
        steps=steps,
    )
    return game, msgspec.json.encode(timeline)


def dealt(seed: int) -> Deal:
    """The deal of a seed."""
    return _dealt(deal(seed))


def _dealt(first: Board) -> Deal:
    return Deal([[card % FACE_DOWN for card in first[pile]] for pile in COLUMNS], list(first[STOCK]))


def _steps(recording: Recording, game: Game, undo_places: Sequence[int]) -> list[TimelineStep]:
    undos = Counter(undo_places)
    steps: list[TimelineStep] = []
    undoable: list[TimelineStep] = []
    for place, move in enumerate(recording.moves):
        for _ in range(undos[place]):
            game.undo()
            undone = undoable.pop()
            steps.append(TimelineStep("undo", undone.target, undone.source, undone.cards, undone.flipped, game.score))
        before = game.board
        played = game.play(move)
        if played is None:
            break
        step = _step(before, move, played, recording.draw, game.score)
        steps.append(step)
        undoable.append(step)
    return steps


def _step(before: Board, move: Move, played: Played, draw: int, score: int) -> TimelineStep:
    if move != STOCK_CLICK:
        source, target, size = move
        flipped = played.board[source][-1] if played.event is MoveEvent.CARD_TURNED_UP else None
        cards = list(before[source][-size:])
        return TimelineStep("move", PILE_NAMES[source], PILE_NAMES[target], cards, flipped, score)
    if played.event is MoveEvent.WASTE_TURNED_OVER:
        return TimelineStep("stock", PILE_NAMES[WASTE], PILE_NAMES[STOCK], list(before[WASTE]), None, score)
    return TimelineStep("stock", PILE_NAMES[STOCK], PILE_NAMES[WASTE], list(before[STOCK][-draw:]), None, score)
