"""The data of a benchmark: players, saved progress and replays, loaded by COPY.

The id of a player, replay or refresh token is a hash of its number, so that the load generator can make a player's
tokens without querying the database.
"""

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import bcrypt
import psycopg2

from solisync.access.tokens import Tokens, access_expiry, refresh_expiry
from solisync.rules.counting import counts_of
from solisync.rules.documents import read_stored
from solisync.rules.sessions import RefreshRecord

SECRET = "a secret for benchmarks, known to everybody"
PASSWORD = "correct horse battery"
NIL = str(UUID(int=0))
BATCH = 10_000  # rows in a COPY
# The tables that TRUNCATE names; CASCADE reaches the others.
TABLES = "users, known_states, rate_limits, analytics_events, analytics_names"


@dataclass(frozen=True, kw_only=True)
class World:
    """The number of rows that the database has at the beginning."""

    players: int
    document_bytes: int
    replays: int
    replay_bytes: int


TOWN = World(players=1_000, document_bytes=3_000, replays=200, replay_bytes=20_000)


def identity(kind: str, number: int) -> str:
    """The id of the player, refresh token or replay with this number."""
    return str(UUID(hashlib.md5(f"{kind} {number}".encode(), usedforsecurity=False).hexdigest()))


def username(number: int) -> str:
    """The username of the player with this number."""
    return f"player_{number}"


def issued_at() -> datetime:
    """The time when the players' tokens were issued: the coming midnight, so that all processes of a day agree."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


class Player:
    """The tokens of a player: `refresh` is replaced with each refresh."""

    _tokens = Tokens(SECRET.encode())

    def __init__(self, number: int) -> None:
        now = issued_at()
        self.number = number
        record = RefreshRecord(identity("token", number), refresh_expiry(now), access_expiry(now), None)
        pair = self._tokens.pair(identity("user", number), record)
        self.access, self.refresh = pair.access_token.encode(), pair.refresh_token


def payload(size: int, *, user_id: str = NIL) -> dict[str, Any]:
    """A payload of about `size` bytes for a push, filled with achievements and days of the daily challenge."""
    stats: dict[str, Any] = dict.fromkeys(
        ("games_played", "games_won", "games_lost", "draw_one_wins", "draw_three_wins"), 40
    )
    stats |= dict.fromkeys(("win_streak_current", "win_streak_best", "best_single_score", "lifetime_score"), 4000)
    stats |= {"avg_time_seconds": 310, "fastest_win_seconds": 95, "last_modified": "2026-11-20T11:59:00Z"}
    history: list[str] = []
    progress = {
        "total_xp": 5600,
        "level": 10,
        "daily_challenge_last_completed": "2026-01-01",
        "daily_challenge_streak": 4,
        "daily_challenge_history": history,
        "weekly_goal_week_iso": "2026-W47",
        "weekly_goal_progress": {"win_5": 2},
        "unlocked_card_backs": [0, 3],
        "unlocked_backgrounds": [0],
        "last_modified": "2026-11-20T11:59:00Z",
    }
    achievements: list[dict[str, Any]] = []
    document = {
        "user_id": user_id,
        "stats": stats,
        "achievements": achievements,
        "progress": progress,
        "last_modified": "2026-11-20T11:59:00Z",
    }
    achievement = {"unlocked": True, "unlock_date": "2026-01-02T10:00:00Z", "reward_granted": True}
    while (missing := size - len(_compact(document))) > 0:
        if missing > 500 or len(history) > 100:
            achievements.append({"id": f"achievement_{len(achievements):03}"} | achievement)
        else:
            history.append(str(datetime(2026, 1, 1).date() - timedelta(days=len(history))))
    return document


def replay(size: int) -> str:
    """A replay of about `size` bytes."""
    header = '{"mode":"Classic","draw_mode":"DrawOne","final_score":1240,"time_seconds":95,"recorded_at":"2026-11-20"'
    move = '{"from":"tableau_3","to":"foundation_1"}'
    return f'{header},"moves":[{",".join([move] * max(1, (size - len(header)) // (len(move) + 1)))}]}}'


def populate(dsn: str, world: World) -> None:
    """Delete all rows of the database, and load this world as the service would have stored it.

    All replays are verified, and triggers put them on boards.
    """
    connection = psycopg2.connect(dsn)
    with connection, connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {TABLES} CASCADE")
        for columns, rows in _tables(world):
            for batch in _batches(rows):
                cursor.copy_expert(f"COPY {columns} FROM STDIN", batch)
        cursor.execute("TRUNCATE replay_checks")  # triggers queued the replays, which had no verdicts yet
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
        cursor.execute("CHECKPOINT")
    connection.close()


def _tables(world: World) -> Iterator[tuple[str, Iterator[str]]]:
    now = datetime.now(UTC)
    users = [identity("user", number) for number in range(world.players)]
    password_hash = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(12)).decode()
    document = _compact(payload(world.document_bytes))
    counts = counts_of(read_stored(document.encode()).payload).encode()
    body = replay(world.replay_bytes)
    expiry, ends = access_expiry(issued_at()), refresh_expiry(issued_at())
    yield (
        "users (id, username, password_hash, created_at, access_expiries)",
        (f"{user}\t{username(number)}\t{password_hash}\t{now}\t{{{expiry}}}\n" for number, user in enumerate(users)),
    )
    yield (
        "refresh_tokens (jti, session_id, user_id, expires_at, begun_at, used_at, user_agent, access_expiry)",
        (
            f"{identity('token', number)}\t{identity('session', number)}\t{user}\t{ends}"
            f"\t{now}\t{now}\ta game\t{expiry}\n"
            for number, user in enumerate(users)
        ),
    )
    yield (
        "sync_states (user_id, payload, counted, revision)",
        (f"{user}\t{document}\t{counts}\t1\n" for user in users),
    )
    yield (
        "known_states (session_id, user_id, pushed, answers)",
        (f'{identity("session", number)}\t{user}\t{counts}\t{{"{counts}"}}\n' for number, user in enumerate(users)),
    )
    yield (
        "leaderboard (user_id, display_name, best_score, best_time_secs, recorded_at, visible)",
        (f"{user}\tPlayer {number}\t{4000 + number % 9000}\t90\t{now}\tt\n" for number, user in enumerate(users)),
    )
    yield (
        "replays (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, recorded_at)",
        (
            f"{identity('replay', number)}\t{users[number % len(users)]}\t{now - timedelta(seconds=number)}"
            f"\t{body}\t{len(body)}\tClassic\tDrawOne\t1240\t95\t2026-11-20\n"
            for number in range(world.replays)
        ),
    )
    yield (
        "verdicts (replay_id, status, ruleset, undos, score, moves, checked_at, engine)",
        (
            f"{identity('replay', number)}\tverified\toriginal\t0\t1240\t120\t{now}\t1\n"
            for number in range(world.replays)
        ),
    )


def _batches(rows: Iterator[str]) -> Iterator[io.StringIO]:
    # Batches, because psycopg2 would read a single file in small pieces.
    batch: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield io.StringIO("".join(batch))
            batch = []
    yield io.StringIO("".join(batch))


def _compact(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))
