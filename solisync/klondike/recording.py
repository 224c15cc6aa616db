"""Reading an uploaded replay: arbitrary JSON text becomes a `Recording`, or is refused as unreadable."""

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Literal, NoReturn

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from .deal import EXACT_MAX, exact_integer, read_seed
from .rules import COLUMNS, FOUNDATIONS, STOCK, STOCK_CLICK, WASTE, Move

_DIGITS_MAX = 100

MODES = ("Classic", "Zen", "Challenge", "TimeAttack", "Difficulty")
DRAWS = {"DrawOne": 1, "DrawThree": 3}
"""For each draw mode, the number of cards that a click on the stock deals."""
DRAW_MODES = tuple(DRAWS)


class Reason(StrEnum):
    """The reason why a replay isn't verified; docs/verification.md "Verdicts" explains each."""

    NO_SEED = "no_seed"
    NO_MOVES = "no_moves"
    SHAPE = "shape"
    ILLEGAL_MOVE = "illegal_move"
    NOT_WON = "not_won"
    SCORE = "score"
    NO_EXPLANATION = "no_explanation"
    BUDGET = "budget"
    CRASHED = "crashed"
    SEED_ROUNDED = "seed_rounded"


class UnreadableError(ValueError):
    """The replay isn't in the form that clients write; `reason` is NO_SEED, NO_MOVES or SHAPE."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A game as its client recorded it: all accepted moves, including moves undone later."""

    seed: int
    draw_mode: str
    mode: str
    """One of MODES."""
    final_score: int | None
    """The claimed score without the time bonus, or None if it isn't a whole number."""
    moves: tuple[Move, ...]
    undo_places: tuple[int, ...] = ()
    """The undos that the client reports: for each, the index of the recorded move that came next."""

    @property
    def seed_may_be_rounded(self) -> bool:
        """Whether the seed may be a rounded one, from a client whose numbers are doubles."""
        return self.seed > EXACT_MAX and int(float(self.seed)) == self.seed

    @property
    def draw(self) -> int:
        """The number of cards that a click on the stock deals."""
        return DRAWS[self.draw_mode]

    @property
    def is_zen(self) -> bool:
        """Whether the game scores nothing."""
        return self.mode == "Zen"

    @property
    def allows_undo(self) -> bool:
        """Whether moves could be undone."""
        return self.mode != "Challenge"


class Pile(Struct, frozen=True, forbid_unknown_fields=True):
    """A foundation or a column, counted from 0, from the left."""

    # Exactly one of the two: the schema documents that, and `_pile` checks it.
    foundation: Annotated[int, Meta(ge=0, le=len(FOUNDATIONS) - 1)] | UnsetType = field(
        default=UNSET, name="Foundation"
    )
    tableau: Annotated[int, Meta(ge=0, le=len(COLUMNS) - 1)] | UnsetType = field(default=UNSET, name="Tableau")


_Place = Literal["Stock", "Waste"] | Pile


class Cards(Struct, frozen=True):
    """The top cards of one pile go to another."""

    source: _Place = field(name="from")
    target: _Place = field(name="to")
    count: Annotated[int, Meta(ge=0, examples=[1])]


class CardsMoved(Struct, frozen=True, forbid_unknown_fields=True):
    """A move of cards, not a click on the stock."""

    cards: Cards = field(name="Move")


# Clients of schema version 1 wrote "Draw" and "Recycle" for the two effects of a click on the stock.
RecordedMove = Literal["StockClick", "Draw", "Recycle"] | CardsMoved


class _Level(Struct, frozen=True, forbid_unknown_fields=True):
    level: str = field(name="Difficulty")


class _Replay(Struct, frozen=True, kw_only=True):
    mode: Literal[MODES] | _Level  # type: ignore[valid-type]
    draw_mode: Literal[DRAW_MODES]  # type: ignore[valid-type]
    final_score: int | float
    moves: list[RecordedMove]


def read_recording(body: bytes) -> Recording:
    """Read an uploaded replay; raise UnreadableError, and no other error, for any other bytes.

    This uses the standard library's decoder, because msgspec's refuses any body with half of a surrogate pair.
    """
    try:
        fields = json.loads(body.decode("utf-8"), parse_int=_integer, parse_float=_float, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise UnreadableError(Reason.SHAPE) from None
    if not isinstance(fields, dict):
        raise UnreadableError(Reason.SHAPE)
    seed = read_seed(fields.get("seed"))
    if seed is None:
        raise UnreadableError(Reason.NO_SEED)
    if not fields.get("moves"):
        raise UnreadableError(Reason.NO_MOVES)
    try:
        # Only known fields, because a key with half of a surrogate pair can't be converted.
        known = {name: fields[name] for name in _Replay.__struct_fields__ if name in fields}
        replay = msgspec.convert(known, type=_Replay)
        moves = tuple(map(_move, replay.moves))
    except (msgspec.ValidationError, ValueError):
        raise UnreadableError(Reason.SHAPE) from None
    recording = Recording(
        seed=seed,
        draw_mode=replay.draw_mode,
        mode=replay.mode if isinstance(replay.mode, str) else "Difficulty",
        final_score=_whole(replay.final_score),
        moves=moves,
    )
    return _with_undo_places(recording, fields.get("undo_places"))


def _with_undo_places(recording: Recording, places: object) -> Recording:
    """The recording with the client's places of undos, or without any if `places` isn't a valid list."""
    if not isinstance(places, list) or not recording.allows_undo or len(places) > len(recording.moves):
        return recording
    if not all(type(place) is int and 0 <= place < len(recording.moves) for place in places):
        return recording
    return replace(recording, undo_places=tuple(places)) if places == sorted(places) else recording


def _integer(digits: str) -> int | float:
    # Python refuses to make an integer of more than 4,300 digits, and is slow with slightly fewer.
    return int(digits) if len(digits) <= _DIGITS_MAX else float(digits)


def _float(spelling: str) -> int | float:
    return exact_integer(float(spelling))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _whole(score: float) -> int | None:
    return int(score) if isinstance(score, int) or score.is_integer() else None


_RECORDED_PILES: dict[int, str | dict[str, int]] = {
    **{pile: {"Foundation": number} for number, pile in enumerate(FOUNDATIONS)},
    **{pile: {"Tableau": number} for number, pile in enumerate(COLUMNS)},
    STOCK: "Stock",
    WASTE: "Waste",
}


def recorded(move: Move) -> str | dict[str, object]:
    """A move as clients write it in `moves`."""
    if move == STOCK_CLICK:
        return "StockClick"
    return {"Move": {"from": _RECORDED_PILES[move.source], "to": _RECORDED_PILES[move.target], "count": move.size}}


def _move(recorded: str | CardsMoved) -> Move:
    if isinstance(recorded, str):
        return STOCK_CLICK
    cards = recorded.cards
    return Move(_pile(cards.source), _pile(cards.target), cards.count)


def _pile(place: str | Pile) -> int:
    """Return the index of a pile in a board; raise ValueError for an object that names no pile, or two."""
    if isinstance(place, str):
        return STOCK if place == "Stock" else WASTE
    foundation, tableau = place.foundation, place.tableau
    if foundation is not UNSET and tableau is UNSET:
        return FOUNDATIONS[foundation]
    if tableau is not UNSET and foundation is UNSET:
        return COLUMNS[tableau]
    raise ValueError("names no pile, or two")
