"""Finished games that clients send by their ids: message shapes, and the effect of a game on progress (docs/sync.md).

Each game is read by itself, so that a wrong game costs the others nothing. New games are added to the stored progress
in the order of their ends, so that the sums don't depend on the order in which they arrive.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import count
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, structs

from ..errors import BadRequest
from ..klondike import DRAW_MODES, MODES, read_seed
from ..klondike.daily import FIRST_DAY, daily_seed
from .challenge import daily_challenge
from .json_body import read_json
from .merge import level, week_of
from .replays import DifficultyMode
from .shapes import U32_MAX, U64_MAX, Checked, Id, SpelledTime, Time, canonical_uuid, is_id, may_lack_colon, utc
from .surrogates import has_surrogates, without_lone_surrogates
from .sync import HISTORY_DAYS, Document, Payload

GAMES_MAX = 100  # of a request
KEPT = 200_000  # games of a player that are remembered
KEPT_OF_GUEST = 20_000
DAY_HOURS = 36  # from the start of a day, in UTC: its board and its goal count wins that ended in this time

_FAST_SECONDS, _FAST_MOST, _FAST_LEAST = 120, 50, 10
_XP_OF_WIN, _XP_WITHOUT_UNDO, _XP_OF_DAY, _XP_OF_WEEK = 50, 25, 100, 75
_TIME_BONUS = 700_000  # points of a win in one second, for the goals of days before FIRST_DAY

_RECORDS = {
    mode: (f"{mode.lower()}_best_score", f"{mode.lower()}_fastest_win_seconds")
    for mode in ("Classic", "Zen", "Challenge")
}
_COUNTS = ("games_played", "games_won", "games_lost", "draw_one_wins", "draw_three_wins")
_STREAKS = ("win_streak_current", "win_streak_best")
_MOST = dict.fromkeys(_COUNTS + _STREAKS, U32_MAX) | {"lifetime_score": U64_MAX}

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
        game = _decode(text)
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


def with_games(
    document: Document, games: Iterable[ReceivedGame], latest: datetime | None, now: datetime
) -> tuple[Document, list[Share]]:
    """A document with these games, and what each has added; `latest` is the end of the latest game counted before.

    `now` is the database's time. A later end counts as now, and its date decides which days have begun.
    """
    payload = document.payload
    stats, progress = structs.asdict(payload.stats), structs.asdict(payload.progress)
    progress["weekly_goal_progress"] = {**payload.progress.weekly_goal_progress}
    shares = []
    for game in sorted((_not_after(now, game) for game in games), key=attrgetter("ended_at")):
        in_order = latest is None or game.ended_at >= latest
        before = progress["total_xp"]
        _count(stats, game, in_order=in_order)
        if game.won:
            _reward(progress, game)
            _win_day(progress, game, now.date())
            _meet_weekly(progress, game)
        progress["total_xp"] = min(progress["total_xp"], U64_MAX)
        shares.append(Share(game, progress["total_xp"] - before))
        latest = game.ended_at if in_order else latest
    progress["level"] = level(progress["total_xp"])
    stats["last_modified"] = progress["last_modified"] = now
    changed = structs.replace(
        payload,
        stats=structs.replace(payload.stats, **_capped(stats)),
        progress=structs.replace(payload.progress, **progress),
        last_modified=now,
    )
    return document._replace(payload=changed), shares


def with_shares(document: Document, shares: Iterable[Share], now: datetime) -> Document:
    """A document with the counts, bests and experience that games have added to another; streaks and days stay."""
    payload = document.payload
    stats, xp = structs.asdict(payload.stats), payload.progress.total_xp
    for game, game_xp in shares:
        _count(stats, game, in_order=False)
        xp = min(xp + game_xp, U64_MAX)
    stats["last_modified"] = now
    progress = structs.replace(payload.progress, total_xp=xp, level=level(xp), last_modified=now)
    changed = structs.replace(payload, stats=structs.replace(payload.stats, **_capped(stats)), progress=progress)
    return document._replace(payload=changed)


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


def _not_after(now: datetime, game: ReceivedGame) -> ReceivedGame:
    return game if game.ended_at <= now else game._replace(ended_at=now.astimezone(game.ended_at.tzinfo))


def _count(stats: dict[str, Any], game: ReceivedGame, *, in_order: bool) -> None:
    """Add a game to the statistics; without `in_order`, it ended before the latest game, and changes no streak."""
    stats["games_played"] += 1
    if not game.won:
        stats["games_lost"] += 1
        if in_order:
            stats["win_streak_current"] = 0
        return
    won, score, seconds = stats["games_won"], game.score, game.seconds
    stats["avg_time_seconds"] = (stats["avg_time_seconds"] * won + seconds) // (won + 1)
    stats["games_won"] = won + 1
    stats["lifetime_score"] += score
    stats["draw_one_wins" if game.draw_mode == "DrawOne" else "draw_three_wins"] += 1
    if in_order:
        stats["win_streak_current"] += 1
        if stats["win_streak_current"] > stats["win_streak_best"]:
            stats["win_streak_best"] = stats["win_streak_current"]
    best_score, best_time = _RECORDS.get(game.mode, (None, None))
    for name in ("best_single_score", best_score):
        if name is not None and score > stats[name]:
            stats[name] = score
    for name in ("fastest_win_seconds", best_time):
        if name is not None and seconds and (seconds < stats[name] or not stats[name]):  # 0 means never
            stats[name] = seconds


def _capped(stats: dict[str, Any]) -> dict[str, Any]:
    """The statistics with each sum at most at the bound of its type."""
    return stats | {name: min(stats[name], most) for name, most in _MOST.items()}


def _reward(progress: dict[str, Any], game: ReceivedGame) -> None:
    fast = max(_FAST_LEAST, _FAST_MOST - 40 * game.seconds // _FAST_SECONDS) if game.seconds < _FAST_SECONDS else 0
    progress["total_xp"] += _XP_OF_WIN + fast + (0 if game.undone else _XP_WITHOUT_UNDO)


def _win_day(progress: dict[str, Any], game: ReceivedGame, today: date) -> None:
    """Enter a win of a day's deal: in the day's time into its history, and later as won later."""
    day = None if game.mode == "Zen" else _day_of(game, today)
    if day is None:
        return
    if not _in_time(day, game.ended_at):
        if day not in progress["daily_won_later"]:
            progress["daily_won_later"] = sorted((*progress["daily_won_later"], day))[-HISTORY_DAYS:]
        return
    last: date | None = progress["daily_challenge_last_completed"]
    if day == last or day in progress["daily_challenge_history"]:
        return
    history = sorted((*progress["daily_challenge_history"], day))[-HISTORY_DAYS:]
    progress["daily_challenge_history"] = history
    streak = progress["daily_challenge_streak"]
    if last is None or day > last:
        streak = streak + 1 if last is not None and day.toordinal() == last.toordinal() + 1 else 1
        progress["daily_challenge_last_completed"] = last = day
    streak = min(max(streak, _run(history, last)), U32_MAX)
    progress["daily_challenge_streak"] = streak
    progress["daily_challenge_longest_streak"] = max(progress["daily_challenge_longest_streak"], streak)
    if _meets_goal(day, game):
        progress["total_xp"] += _XP_OF_DAY


def _day_of(game: ReceivedGame, today: date) -> date | None:
    """The day whose deal a game was: of the last HISTORY_DAYS, or of the day on which it ended, or the day before."""
    if game.seed is None:
        return None
    day = _days_by_seed(today).get(game.seed)
    if day is not None:
        return day
    ended = game.ended_at.astimezone(UTC).date().toordinal()
    days = (date.fromordinal(each) for each in (ended, ended - 1) if each)
    return next((day for day in days if daily_seed(day) == game.seed), None)


@lru_cache(2)
def _days_by_seed(today: date) -> dict[int, date]:
    return {daily_seed(day): day for day in (today - timedelta(days) for days in range(HISTORY_DAYS))}


def _in_time(day: date, ended_at: datetime) -> bool:
    return ended_at < datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=DAY_HOURS)


def _run(days: list[date], last: date) -> int:
    """The number of consecutive days that end with `last`."""
    known, end = {day.toordinal() for day in days}, last.toordinal()
    return next(length for length in count() if end - length not in known)


def _meets_goal(day: date, game: ReceivedGame) -> bool:
    challenge = daily_challenge(day)
    if challenge.max_time_secs is not None:
        return game.seconds <= challenge.max_time_secs
    bonus = _TIME_BONUS // max(1, game.seconds) if day < FIRST_DAY else 0
    return challenge.target_score is None or game.score + bonus >= challenge.target_score


# The goals of a week: name, number of wins, and which wins count.
_WEEKLY: tuple[tuple[str, int, Callable[[ReceivedGame], bool]], ...] = (
    ("weekly_5_wins", 5, lambda game: True),
    ("weekly_3_no_undo", 3, lambda game: not game.undone),
    ("weekly_3_fast", 3, lambda game: game.seconds < 180),
    ("weekly_1_under_five", 1, lambda game: game.seconds < 300),
    ("weekly_draw_three", 1, lambda game: game.draw_mode == "DrawThree"),
)


def _meet_weekly(progress: dict[str, Any], game: ReceivedGame) -> None:
    week, known = week_of(game.ended_at.date()), progress["weekly_goal_week_iso"] or ""
    if week < known:
        return
    if week > known:
        progress["weekly_goal_week_iso"], progress["weekly_goal_progress"] = week, {}
    goals = progress["weekly_goal_progress"]
    for name, times, counts in _WEEKLY:
        done = goals.get(name, 0)
        if done < times and counts(game):
            goals[name] = done + 1
            if done + 1 == times:
                progress["total_xp"] += _XP_OF_WEEK
