"""Replays: their shape, and the header that is read from an upload (docs/protocol.md "Replays").

A replay is JSON that is stored byte for byte. Only the header at its top level is decoded and checked. The header's
numbers and times keep the spelling of the upload.
"""

import re
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256
from math import ceil, floor
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct

from ..errors import BadRequest
from ..klondike import DRAW_MODES, MODES, Reason, Status, read_seed
from .json_body import read_json
from .leaderboard import BEST_MAX, NO_BESTS, Bests
from .shapes import Id, SpelledTime, Time, canonical_uuid
from .surrogates import without_surrogates

Fields = dict[str, Raw]

LEVELS = ("Easy", "Medium", "Hard", "Expert", "Grandmaster", "Random")
NUMBER_MAX = 2**53
EXPONENT_MAX = 30  # the greatest exponent of a number, positive or negative; others are refused
SPELLING_MAX = 64  # lists show a longer spelling of a number shortened; the replay keeps it
MOMENT_MAX = 35  # characters of a time with nine digits of a second and an offset

CHARGE_MIN = 4_096  # bytes; also in migrations/baseline.sql

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?0*(?:[12]?[0-9]|30))?")
_BELOW_NANOSECONDS = re.compile(r"\.[0-9]{10}")

Moment = Annotated[
    str,
    Meta(
        description="a date, or a time with an offset and at most nine digits of a second (RFC 3339)",
        max_length=MOMENT_MAX,
        examples=["2026-11-20"],
    ),
]


_SPELLING = f"an exponent, if there is one, is from -{EXPONENT_MAX} to {EXPONENT_MAX}"


class DifficultyMode(Struct, frozen=True, rename={"level": "Difficulty"}, forbid_unknown_fields=True):
    """The mode Difficulty, with its level."""

    level: Literal[LEVELS]  # type: ignore[valid-type]


class Replay(Struct, frozen=True, kw_only=True):
    """The required fields of a replay; the server keeps all other fields byte for byte.

    RecordedGame is a replay that can be verified.
    """

    mode: Annotated[Literal[MODES] | DifficultyMode, Meta(examples=["Classic"])]  # type: ignore[valid-type]
    draw_mode: Literal[DRAW_MODES]  # type: ignore[valid-type]
    final_score: Annotated[float, Meta(ge=-NUMBER_MAX, le=NUMBER_MAX, description=_SPELLING, examples=[1240])]
    time_seconds: Annotated[float, Meta(ge=0, le=NUMBER_MAX, description=_SPELLING, examples=[95])]
    recorded_at: Moment
    seed: Annotated[
        Any,
        Meta(
            description="an integer from 0 to 2^64-1, or that integer as text; below 2^53 also as a float like 2202.0; "
            "anything else counts as absent",
            examples=[1364344768803968],
        ),
    ] = UNSET
    game_id: Annotated[
        Any,
        Meta(
            description="a UUID of the game, with which an upload can be repeated; anything else counts as absent",
            examples=["5d2c8f8e-6f0a-4c53-9b1e-3a7d0c9e4b21"],
        ),
    ] = UNSET


class Uploaded(Struct, frozen=True):
    """The id of the stored replay."""

    id: Id


class Header(Struct, frozen=True, kw_only=True):
    """The header of a replay, as stored in columns; numbers are spelled as uploaded."""

    mode: str
    draw_mode: str
    final_score: str
    time_seconds: str
    seed: int | None
    recorded_at: str

    @property
    def bests(self) -> Bests:
        """The score and time with which a Classic replay may improve its player's leaderboard entry."""
        if self.mode != "Classic":
            return NO_BESTS
        score, seconds = floor(float(self.final_score)), ceil(float(self.time_seconds))
        return Bests(
            score=min(score, BEST_MAX) if score > 0 else None,
            seconds=seconds if 0 < seconds <= BEST_MAX else None,
        )


class ReceivedReplay(NamedTuple):
    """A valid replay: the bytes to store, the decoded header, and the `game_digest`."""

    raw: bytes
    header: Header
    digest: bytes | None


def read_replay(body: bytes) -> ReceivedReplay:
    """Decode the top level of a replay; raises BadRequest with the name of the wrong field."""
    fields = read_json(decodable(body), Fields)
    return ReceivedReplay(body, read_header(fields), game_digest(fields, body))


def game_digest(fields: Fields, body: bytes) -> bytes | None:
    """The SHA-256 of a replay, which identifies repeated uploads; None for a replay without a `game_id`.

    The digest covers the id, which is a part of the replay: two uploads are the same game if all their bytes are equal.
    """
    with suppress(KeyError, msgspec.ValidationError):
        if canonical_uuid(msgspec.json.decode(fields["game_id"], type=str)) is not None:
            return sha256(body).digest()
    return None


def charge(size: int) -> int:
    """The number of bytes that a replay of this size takes of the account's quota."""
    return max(size, CHARGE_MIN)


def decodable(body: bytes) -> bytes:
    """A copy of the replay that can be decoded, with another character for each half of a surrogate pair."""
    return without_surrogates(body, digit=b"f")


def read_header(fields: Fields) -> Header:
    """The header from the top-level fields of a replay; raises BadRequest with the name of the wrong field."""
    return Header(
        mode=_mode(fields),
        draw_mode=_choice(fields, "draw_mode", DRAW_MODES),
        final_score=_number(fields, "final_score", -NUMBER_MAX),
        time_seconds=_number(fields, "time_seconds", 0),
        seed=_seed(fields),
        recorded_at=_moment(fields),
    )


def _mode(fields: Fields) -> str:
    spelling = _get(fields, "mode")
    if not spelling.startswith("{"):
        return _choice(fields, "mode", MODES)
    with suppress(msgspec.ValidationError):
        if msgspec.json.decode(spelling, type=dict[str, str]) in [{"Difficulty": level} for level in LEVELS]:
            return "Difficulty"
    raise _wrong("mode", f"one of {', '.join(MODES)}, or Difficulty with one of {', '.join(LEVELS)}")


def _choice(fields: Fields, name: str, choices: tuple[str, ...]) -> str:
    value = _text(fields, name)
    if value not in choices:
        raise _wrong(name, f"one of {', '.join(choices)}")
    return value


def _number(fields: Fields, name: str, least: int) -> str:
    spelling = _get(fields, name)
    if not _NUMBER.fullmatch(spelling) or not least <= _value(spelling) <= NUMBER_MAX:
        raise _wrong(name, f"a number from {least} to {NUMBER_MAX}, without an exponent beyond {EXPONENT_MAX}")
    return spelling if len(spelling) <= SPELLING_MAX else repr(round(float(spelling), EXPONENT_MAX))


def _value(spelling: str) -> float | Decimal:
    """The value of a number; exact at NUMBER_MAX, to which a float would round a number that exceeds it."""
    value = float(spelling)
    return Decimal(spelling) if abs(value) == NUMBER_MAX else value


def _seed(fields: Fields) -> int | None:
    try:
        return read_seed(msgspec.json.decode(fields["seed"], type=int | float | str))
    except (KeyError, msgspec.ValidationError):
        return None


def _moment(fields: Fields) -> str:
    text = _text(fields, "recorded_at")
    for kind in (date, Time) if len(text) <= MOMENT_MAX and not _BELOW_NANOSECONDS.search(text) else ():
        with suppress(msgspec.ValidationError, OverflowError):
            moment = msgspec.convert(text, kind)
            if isinstance(moment, datetime):
                msgspec.convert(text, SpelledTime)
                moment.astimezone(UTC)
            return text
    raise _wrong("recorded_at", "a date like 2026-11-20, or an RFC 3339 time with at most nine digits of a second")


def shown_moment(text: str) -> str:
    """The `recorded_at` of a stored replay as uploaded, or its instant with more than nine decimals of a second.

    Version 1.0.0 accepted any number of decimals.
    """
    if not _BELOW_NANOSECONDS.search(text):
        return text
    return str(msgspec.to_builtins(msgspec.convert(text, Time).astimezone(UTC)))


def _text(fields: Fields, name: str) -> str:
    try:
        return msgspec.json.decode(_get(fields, name).encode(), type=str)
    except msgspec.ValidationError:
        raise _wrong(name, "text") from None


def _get(fields: Fields, name: str) -> str:
    if name not in fields:
        raise BadRequest("bad_field", f"replay lacks `{name}`")
    return bytes(fields[name]).decode()


def _wrong(name: str, wanted: str) -> BadRequest:
    return BadRequest("bad_field", f"`{name}` of a replay must be {wanted}")


VerdictStatus: TypeAlias = Literal[tuple(status.value for status in Status)]  # type: ignore[valid-type]
VerdictReason: TypeAlias = Literal[tuple(reason.value for reason in Reason)]  # type: ignore[valid-type]


class VerdictAnswer(Struct, frozen=True):
    """The result of a check; all fields but `status` are null before the first check."""

    status: VerdictStatus
    ruleset: Annotated[str | None, Meta(description="null unless verified, like `undos`, `score` and `moves`")]
    undos: Annotated[int | None, Meta(description="the smallest number of undos that explains the score")]
    score: int | None
    moves: Annotated[int | None, Meta(description="recorded moves, including undone ones")]
    reason: VerdictReason | None
    checked_at: Time | None
