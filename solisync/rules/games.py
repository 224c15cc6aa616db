"""Finished games that clients send by their ids: message shapes (docs/sync.md).

Each game is read by itself, so that a wrong game costs the others nothing.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ..errors import BadRequest
from ..klondike import DRAW_MODES, MODES, read_seed
from .doubles import with_integers_in
from .json_body import read_json
from .replays import DifficultyMode
from .shapes import Checked, Id, SpelledTime, Time, canonical_uuid, is_id, may_lack_colon, utc
from .surrogates import has_surrogates, without_lone_surrogates
from .sync import Payload

GAMES_MAX = 100  # of a request
KEPT = 200_000  # games of a player that are remembered
KEPT_OF_GUEST = 20_000

_I32 = Annotated[int, Meta(ge=0, le=2**31 - 1, examples=[605])]


class SentGame(Checked, frozen=True, kw_only=True):
    """A game that has ended; `ended_at` keeps its offset."""

    game_id: Annotated[Id, Meta(description="a UUID that the client makes for the game")]
    mode: Annotated[Literal[MODES] | DifficultyMode, Meta(examples=["Classic"])]  # type: ignore[valid-type]
    draw_mode: Literal[DRAW_MODES]  # type: ignore[valid-type]
    won: bool
    score: _I32
    seconds: _I32
    ended_at: Annotated[
        Time,
        Meta(
            description="with the player's offset, whose date decides the week",
            examples=["2026-11-20T18:03:00+01:00"],
        ),
    ]
    undone: Annotated[bool, Meta(description="whether the player used undo")]
    seed: Annotated[Raw, Meta(description="as in a replay; anything else counts as absent")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        utc("ended_at", self.ended_at)  # raises ValueError outside of the years 1 to 9999


class Games(Struct, frozen=True):
    """Games to count, new ones or not."""

    games: Annotated[list[SentGame], Meta(min_length=1, max_length=GAMES_MAX)]


class _Undecoded(Struct, frozen=True):
    games: list[Raw]


class GameResult(Struct, frozen=True):
    """The result of a game: not `counted` and without `error`, the game was counted before."""

    game_id: Annotated[Id | None, Meta(description="null if it can't be read")]
    counted: bool
    error: Literal["bad_field"] | None = None

    @property
    def outcome(self) -> str:
        """The name of the result: counted, refused, or known from before."""
        return "counted" if self.counted else "refused" if self.error else "known"


class GamesAnswer(Struct, frozen=True):
    """The results, in the order of the request, and the stored progress."""

    games: list[GameResult]
    merged: Payload
    server_time: Time


class ReceivedGame(NamedTuple):
    """A game as it is counted and remembered: `mode` without its level, `ended_at` with the player's offset."""

    game_id: str
    mode: str
    draw_mode: str
    won: bool
    score: int
    seconds: int
    ended_at: datetime
    undone: bool
    seed: int | None


class ReceivedGames(NamedTuple):
    """The games of a request before each is read, and the size of its body."""

    games: list[Raw]
    size: int


class Share(NamedTuple):
    """What a game has added to the progress."""

    game: ReceivedGame
    xp: int


class CountedGame(Checked, frozen=True):
    """A game as an export has it."""

    game_id: Id
    ended_at: Time
    mode: Literal[MODES]  # type: ignore[valid-type]
    draw_mode: Literal[DRAW_MODES]  # type: ignore[valid-type]
    won: bool
    score: _I32
    seconds: _I32
    xp: _I32

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_id(self.game_id):
            raise ValueError("`game_id` must be a UUID")

    @property
    def share(self) -> Share:
        """What the game has added."""
        values = self.mode, self.draw_mode, self.won, self.score, self.seconds, self.ended_at
        return Share(ReceivedGame(self.game_id, *values, undone=False, seed=None), self.xp)


def read_games(body: bytes) -> ReceivedGames:
    """Decode a request, except for its games; raises BadRequest."""
    # Half of a surrogate pair, for which msgspec would refuse the whole body, is at most an error of its game.
    whole = without_lone_surrogates(body, instead=rb"\ufffd") if has_surrogates(body) else body
    sent = read_json(whole, _Undecoded).games
    if len(sent) > GAMES_MAX:
        raise BadRequest("batch_too_large", f"request may contain at most {GAMES_MAX} games")
    if not sent:
        raise BadRequest("bad_field", "request body: Expected `array` of length >= 1 - at `$.games`")
    for place, game in enumerate(sent):
        if not bytes(game).startswith(b"{"):
            raise BadRequest("bad_field", f"request body: Expected `object` - at `$.games[{place}]`")
    return ReceivedGames(sent, len(body))


def read_game(raw: Raw) -> ReceivedGame | GameResult:
    """One game of a request; or the error, if a field is wrong."""
    text = bytes(raw)
    try:
        game = _decode_game(text)
        game_id = canonical_uuid(game.game_id)
        if game_id is None:
            return GameResult(None, False, "bad_field")
        if may_lack_colon(text):
            _decode_spelling(text)
    except msgspec.DecodeError:
        return GameResult(_readable_id(text), False, "bad_field")
    mode = game.mode if isinstance(game.mode, str) else "Difficulty"
    seed = None if isinstance(game.seed, UnsetType) else _seed_of(game.seed)
    return ReceivedGame(
        game_id, mode, game.draw_mode, game.won, game.score, game.seconds, game.ended_at, game.undone, seed
    )


def _decode_game(text: bytes) -> SentGame:
    try:
        return _decode(text)
    except msgspec.ValidationError:  # perhaps of a client that has doubles alone
        return _decode(with_integers_in(text, ("score", "seconds")))


def _seed_of(raw: Raw) -> int | None:
    try:
        return read_seed(msgspec.json.decode(raw))
    except msgspec.DecodeError:  # a number that no double can hold
        return None


def _readable_id(text: bytes) -> str | None:
    try:
        return canonical_uuid(_decode_id(text).game_id)
    except msgspec.DecodeError:
        return None


class _Spelling(Struct, frozen=True):
    ended_at: SpelledTime


class _WithId(Struct, frozen=True):
    game_id: str


_decode = msgspec.json.Decoder(SentGame).decode
_decode_spelling = msgspec.json.Decoder(_Spelling).decode
_decode_id = msgspec.json.Decoder(_WithId).decode


def results_of(read: Iterable[ReceivedGame | GameResult], counted: set[str]) -> list[GameResult]:
    """The results of a request's games, of which those with the ids in `counted` were new; an id counts once."""
    left = set(counted)
    results = []
    for game in read:
        if isinstance(game, ReceivedGame):
            results.append(GameResult(game.game_id, game.game_id in left))
            left.discard(game.game_id)
        else:
            results.append(game)
    return results
