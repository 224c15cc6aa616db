"""The stock of made-up players and replays, as clients would make them: for `solisync seed`, benchmarks and tests.

A player depends only on a number, a time and the won games, so the same number is the same player everywhere. Progress
is merged like pushed progress, so derived fields fit the others. Won games are deals whose wins a short search finds,
so that their replays are verified.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import md5
from random import Random
from typing import NamedTuple
from uuid import UUID

import msgspec

from ..klondike import MODES, find_win, recorded
from .counting import counts_of
from .leaderboard import Bests, bests_of
from .merge import merge
from .replays import ReceivedReplay, read_replay
from .shapes import EPOCH, NIL
from .sync import NEVER, NO_UNKNOWN_FIELDS, Achievement, Document, Payload, Progress, Stats

PREFIX = "seeded_"  # a made-up player's username is this prefix and a number from 1 on
DAYS = 365  # the days since the first of them registered; more than a quarter did in the last 30
OPTED_IN = 0.4  # the share of players with an entry on the leaderboard
VERIFIED = 0.9  # the share of players whose replays are won games, unless another is chosen

# Deals that `find_win` wins within 300 positions, some milliseconds each.
_SEEDS = {
    "DrawOne": """
        43 63 117 124 156 315 382 390 407 480 626 640 954 955 1093 1160 1239 1387 1424 1441 1603 1725 1750 1788
        1884 1921 1949 1978 2025 2030 2195 2219 2300 2374 2398 2426 2445 2614 2756 2824 2848 2973 3001 3047 3112
        3131 3386 3416 3492 3671 3755 3759 3832 3849 3941 3954 3968 4004 4066 4080 4106 4293 4373 4383 4446 4454
        4479 4532 4549 4640 4843 4864 4945 5068 5124 5136 5147 5155 5250 5298 5304 5351 5383 5422 5425 5511 5569
        5584 5669 5686 5756 5771 5858 5898 5925 5927 5934 6056 6098 6151 6233 6312 6331 6358 6379 6520 6521 6645
        6681 6732 6753 6774 6853 6878 6938 6990 7003 7021 7038 7341 7358 7428 7617 7707 7737 7778 7825 7888 7936
        7949 8002 8023 8027 8100 8134 8186 8244 8253 8314 8460 8463 8582 8583 8607 8665 8677 8700 8737 8845 8861
        8867 8890 8903 8905 8987 8992 9002 9046 9148 9200 9219 9341 9357 9424 9434 9444 9534 9607 9663 9690 9746
        9755 9822 9873 9910 9973 10015 10056 10145 10220 10361 10459 10464 10485 10500 10522 10539 10548 10569
        10600 10647 10659 10704 10744 10754 10874 10985 11148 11366 11441 11461 11563 11601 11630 11658 11701
        11716 11833 11915 11917 12019 12066 12086 12103 12142 12203 12297 12357 12362 12403 12467 12468 12519
        12560 12734 12795 12874 12875 12926 12985 13043 13104 13181 13223 13234 13348 13400 13533 13554 13563
        13566 13692 13693 13738 13878 13998 14150 14254 14268 14310 14338 14423 14436 14666 14689 14696 14699
        14744 14778 14783 15066 15302 15320 15428 15449 15849 15878 15903 15949 15967 16103 16192 16277 16320
        16376 16411 16425 16524 16539 16788 16840 16890 16928 17029 17095 17194 17407 17470 17520 17662 17680
        17728 17760 17791 17917 18060 18151 18176 18211 18214 18246 18257 18334 18373 18375 18412 18455 18459
        18509 18523 18565 18633 18644 18665 18743 18792 18863 18933 19020 19059 19308 19369 19405 19509 19532
        19670 19695 19737 19761 19983 20008 20059 20097 20160 20255 20284 20300 20394 20536 20615 20643 20711
        20722 20871 20904 20940 20995 21150 21158 21193
    """,
    "DrawThree": """
        21229 21245 21386 21413 21486 21494 21523 21526 21561 21567 21584 21593 21621 21660 21727 21733 21844
        21853 21868 21872 21924 21958 21969 21979 22031 22081 22095 22117 22165 22264 22274 22373 22403 22412
        22427 22457 22499 22567 22625 22630 22638 22644 22649 22750 22757 22787 22888 22914 22917 22920 23070
        23073 23147 23151 23162 23188 23195 23201 23255 23260 23394 23416 23427 23440 23452 23506 23514 23519
        23554 23563 23581 23582 23644 23653 23726 23757 23825 23859 23868 23869 23945 23971 24031 24046 24073
        24114 24139 24171 24246 24255 24292 24307 24408 24409 24425 24449 24467 24484 24490 24515 24545 24554
        24563 24579 24612 24620 24672 24712 24741 24762 24900 24913 24947 24960 25066 25100 25107 25116 25168
        25284 25310 25462 25465 25468 25479 25482 25492 25494 25517 25551 25566 25581 25623 25626 25627 25639
        25658 25713 25792 25818 25864 25906 25977 25987 26031 26097 26138 26141 26149 26163
    """,
}
DEALS = [(int(seed), draw_mode) for draw_mode, seeds in _SEEDS.items() for seed in seeds.split()]

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


class WonGame(NamedTuple):
    """A won game: its deal, its score, and its moves as clients write them."""

    seed: int
    draw_mode: str
    score: int
    moves: list[object]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePlayer:
    """A player of the stock, who played last at `played_at`; `display_name` is None without a leaderboard entry."""

    number: int
    created_at: datetime
    played_at: datetime
    progress: Document
    display_name: str | None
    bests: Bests

    @property
    def id(self) -> str:
        return player_id(self.number)

    @property
    def username(self) -> str:
        return f"{PREFIX}{self.number}"

    @property
    def counted(self) -> str:
        """What the service counts of the progress."""
        return counts_of(self.progress.payload).encode()


class MadeReplay(NamedTuple):
    """A replay of the stock, with the id of its player; `game` is None if the replay has only the shape of a game."""

    id: str
    user_id: str
    received_at: datetime
    received: ReceivedReplay
    game: WonGame | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """Some players with consecutive numbers, their replays, and the share of the players who have won games."""

    first: int = 1
    players: int
    replays: int
    verified: float = VERIFIED
    now: datetime

    @property
    def numbers(self) -> range:
        """The numbers of the players."""
        return range(self.first, self.first + self.players)

    @property
    def winners(self) -> int:
        """The number of players who have won games."""
        return self._winners_before(self.numbers.stop) - self._winners_before(self.first)

    def player(self, number: int) -> MadePlayer:
        """Make the player with this number."""
        return player(number, self.now, self._games(number))

    def replays_of(self, made: MadePlayer) -> Iterator[MadeReplay]:
        """Make the replays of a player, from times since the registration, most likely recent ones."""
        games = self._games(made.number)
        for turn in range(self.turns(made.number)):
            id = replay_id(made.number, turn)
            age = (self.now - made.created_at) * Random(id).random() ** 2  # noqa: S311
            yield made_replay(id, made, self.now - age, games[turn] if games else None)

    def _winners_before(self, number: int) -> int:
        return int((number - 1) * self.verified)

    def turns(self, number: int) -> int:
        """The number of the player's replays: the first players may have one more than the last."""
        return (self.replays + self.players - 1 - (number - self.first)) // self.players

    def _games(self, number: int) -> list[WonGame]:
        """The games that the player has won, one for each replay; none for a player without replays."""
        rounds = math.ceil(self.replays / self.players)
        begin, end = (self._winners_before(each) for each in (number, number + 1))
        return [won_game(begin * rounds + turn) for turn in range(self.turns(number) if end > begin else 0)]


def player_id(number: int) -> str:
    """The id of the player with this number."""
    return identity(f"player {number}")


def replay_id(number: int, turn: int) -> str:
    """The id of a replay of the player with this number; `turn` counts from 0."""
    return identity(f"replay {number} {turn}")


def identity(name: str) -> str:
    """The UUID of a name."""
    return str(UUID(bytes=md5(name.encode(), usedforsecurity=False).digest()))


def win_of(seed: int, draw_mode: str) -> WonGame | None:
    """Win a deal; None if the search finds no win."""
    win = find_win(seed, draw_mode)
    return None if win is None else WonGame(seed, draw_mode, win.score, [*map(recorded, win.moves)])


@cache
def _win(place: int) -> WonGame:
    game = win_of(*DEALS[place])
    assert game is not None
    return game


def won_game(number: int) -> WonGame:
    """The game with this number; after len(DEALS) different games, they begin again."""
    return _win(number * 7 % len(DEALS))  # any step without a common divisor mixes the two draw modes


def player(number: int, now: datetime, games: Sequence[WonGame] = ()) -> MadePlayer:
    """Make the player with this number, whose best score is that of the best of these games, if there are any."""
    random = Random(number)  # noqa: S311  nothing of this is a secret
    created = now - timedelta(days=DAYS * random.random() ** 2)
    played = created + (now - created) * random.random() ** 0.3  # most players have played recently
    won = min(int(random.lognormvariate(3, 1.3)), 20_000)
    best = 5 * random.randint(60, 145)
    if games:
        won, best = max(1, won), max(game.score for game in games)
    stats = _stats(random, won, best, played)
    known = Document(
        Payload(
            user_id=NIL,
            stats=stats,
            achievements=_achievements(random, won, created, played),
            progress=_progress(random, won, created, played),
            last_modified=played,
        ),
        NO_UNKNOWN_FIELDS,
    )
    merged, _ = merge(known, None, played)
    return MadePlayer(
        number=number,
        created_at=created,
        played_at=played,
        progress=merged,
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


def replay(name: str, played_at: datetime, game: WonGame | None = None) -> bytes:
    """Make the replay with this name, as the desktop client uploads it.

    Without a won game, its moves only have the shape of a game.
    """
    random = Random(name)  # noqa: S311
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


def made_replay(id: str, made: MadePlayer, received_at: datetime, game: WonGame | None) -> MadeReplay:
    """Make a replay of a player, as the service receives it."""
    body = replay(id, received_at - timedelta(seconds=2), game)
    return MadeReplay(id, made.id, received_at, read_replay(body), game)


def _move(random: Random) -> object:
    if random.random() < 0.35:
        return "StockClick"
    origin: object = "Waste" if random.random() < 0.3 else {"Tableau": random.randrange(7)}
    to = {"Foundation": random.randrange(4)} if random.random() < 0.4 else {"Tableau": random.randrange(7)}
    return {"Move": {"from": origin, "to": to, "count": 1}}
