"""Sample players and replays, as clients would make them, for sizing a machine and for testing clients.

A player depends only on a number and on the won game, if any, so the same number is the same player everywhere. Sample
progress is merged like pushed progress, so derived fields fit the others.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

import msgspec

from ..klondike import MODES
from .leaderboard import Bests, bests_of
from .merge import merge
from .sample_games import WonGame
from .shapes import EPOCH
from .sync import NEVER, NO_UNKNOWN_FIELDS, Achievement, Document, Payload, Progress, Stats

DAYS = 365  # the days since the first of them registered; more than a quarter did in the last 30
OPTED_IN = 0.4  # the share of players with an entry on the leaderboard

_NIL = str(UUID(int=0))
_GIVEN = (
    "Ann",
    "Bo",
    "Cleo",
    "Dana",
    "Eli",
    "Finn",
    "Gül",
    "Hana",
    "Iris",
    "Jo",
    "Kim",
    "Léa",
    "Max",
    "Noa",
    "Oskar",
    "Zoë",
)
_KINDS = ("the Fox", "of Hearts", "Diamond", "Ace", "K.", "the Patient", "Spades", "77", "& Co", "Clubs")  # fmt: skip
_WINS = (1, 5, 10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 2000)
_MODE_WEIGHTS = (70, 8, 6, 6, 10)
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededPlayer:
    """A sample player; `display_name` is None without a leaderboard entry, `played_at` is the time of the last game."""

    created_at: datetime
    played_at: datetime
    document: bytes
    display_name: str | None
    bests: Bests


def winners_before(number: int, share: float) -> int:
    """How many of the players before this number have won games, if this share of all players has."""
    return int((number - 1) * share)


def player(number: int, now: datetime, game: WonGame | None = None) -> SeededPlayer:
    """Make the player with this number, whose best score is that of the won game."""
    random = Random(number)  # noqa: S311  nothing of this is a secret
    created = now - timedelta(days=DAYS * random.random() ** 2)
    played = created + (now - created) * random.random() ** 0.3  # most players have played recently
    won = min(int(random.lognormvariate(3, 1.3)), 20_000)
    best = 5 * random.randint(60, 145)
    if game is not None:
        won, best = max(1, won), game.score
    stats = _stats(random, won, best, played)
    known = Document(
        Payload(
            user_id=_NIL,
            stats=stats,
            achievements=_achievements(random, won, created, played),
            progress=_progress(random, won, created, played),
            last_modified=played,
        ),
        NO_UNKNOWN_FIELDS,
    )
    merged, _ = merge(known, None, played)
    return SeededPlayer(
        created_at=created,
        played_at=played,
        document=merged.encode(),
        display_name=f"{random.choice(_GIVEN)} {random.choice(_KINDS)}" if random.random() < OPTED_IN else None,
        bests=bests_of(stats),
    )


def _stats(random: Random, won: int, best: int, played: datetime) -> Stats:
    lost = int(won * random.uniform(0.5, 4)) + random.randrange(5)
    streak = min(won, 1 + int(random.expovariate(0.5)))
    score = best if won else 0
    fastest = int(random.uniform(60, 400))
    draw_one = int(won * random.random())
    zen = int(score * random.random()) if won > 20 else 0
    return Stats(
        games_played=won + lost,
        games_won=won,
        games_lost=lost,
        win_streak_current=random.randint(0, streak) if won else 0,
        win_streak_best=streak if won else 0,
        avg_time_seconds=int(fastest * random.uniform(1.2, 2.5)) if won else 0,
        fastest_win_seconds=fastest if won else NEVER,
        lifetime_score=int(won * score * 0.6),
        best_single_score=score,
        draw_one_wins=draw_one,
        draw_three_wins=won - draw_one,
        classic_best_score=score,
        classic_fastest_win_seconds=fastest if won else 0,
        zen_best_score=zen,
        zen_fastest_win_seconds=fastest * 2 if zen else 0,
        last_modified=played,
    )


def _achievements(random: Random, won: int, created: datetime, played: datetime) -> list[Achievement]:
    return [
        Achievement(
            id=f"win_{wins}",
            unlocked=wins <= won,
            unlock_date=created + (played - created) * random.random() if wins <= won else None,
            reward_granted=wins <= won,
        )
        for wins in _WINS
    ]


def _progress(random: Random, won: int, created: datetime, played: datetime) -> Progress:
    days = max(1, (played - created).days)
    dates = sorted({(played - timedelta(days=random.randrange(days))).date() for _ in range(min(won, days) // 2)})
    streak = min(len(dates), int(random.expovariate(0.3)))
    year, week, _ = played.isocalendar()
    return Progress(
        total_xp=won * random.randint(40, 60),
        level=0,  # the merge derives it
        daily_challenge_last_completed=dates[-1] if dates else None,
        daily_challenge_streak=streak,
        daily_challenge_longest_streak=min(len(dates), streak + random.randrange(5)),
        daily_challenge_history=dates,
        weekly_goal_week_iso=f"{year}-W{week:02}",
        weekly_goal_progress={"win_games": random.randint(0, 5), "play_games": random.randint(0, 10)},
        unlocked_card_backs=list(range(1 + min(6, won // 40))),
        unlocked_backgrounds=list(range(1 + min(4, won // 60))),
        challenge_index=won // 10,
        last_modified=played,
    )


def replay(number: int, played_at: datetime, game: WonGame | None = None) -> bytes:
    """Make the replay with this number, as the desktop client uploads it.

    Without a won game, its moves only have the shape of a game.
    """
    random = Random(-1 - number)  # noqa: S311
    (mode,) = random.choices(MODES, _MODE_WEIGHTS)
    if game is None:
        seed = int((played_at - EPOCH).total_seconds() * 1e9) + random.randrange(1000)
        draw_mode = "DrawThree" if random.random() < 0.3 else "DrawOne"
        score = 0 if mode == "Zen" else 5 * random.randint(40, 140)
        game = WonGame(seed, draw_mode, score, [_move(random) for _ in range(random.randint(90, 220))])
    else:
        mode = "Classic"
    return _encode(
        {
            "schema_version": 2,
            "seed": game.seed,
            "draw_mode": game.draw_mode,
            "mode": {"Difficulty": random.choice(("Easy", "Medium", "Hard"))} if mode == "Difficulty" else mode,
            "time_seconds": math.ceil(random.lognormvariate(5.3, 0.4)),
            "final_score": game.score,
            "recorded_at": played_at.astimezone(UTC).date().isoformat(),
            "moves": game.moves,
            "share_url": None,
            "win_move_index": len(game.moves) - 1,
        }
    )


def _move(random: Random) -> object:
    if random.random() < 0.35:
        return "StockClick"
    origin: object = "Waste" if random.random() < 0.3 else {"Tableau": random.randrange(7)}
    to = {"Foundation": random.randrange(4)} if random.random() < 0.4 else {"Tableau": random.randrange(7)}
    return {"Move": {"from": origin, "to": to, "count": 1}}
