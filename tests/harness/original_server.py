"""The original server's SQLite file (docs/moving-in.md): rows as it writes them, and files of all schema levels."""

import json
import sqlite3
from contextlib import closing
from datetime import date

import bcrypt
import msgspec

from solisync.rules.challenge import daily_challenge
from tests.harness.payloads import REPLAY_HEADER, progress_of

ANN, BEN, CEM, DEE = (f"{digit * 8}-1111-4111-8111-111111111111" for digit in "abcd")
PASSWORD = "canary password of old"
LONG_PASSWORD = "canary long password " * 5
HASH, LONG_HASH = (
    bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(4)).decode() for password in (PASSWORD, LONG_PASSWORD)
)
TIME = "2026-11-20T12:00:00+00:00"
LEVELS = range(1, 7)

# The changes of each migration.
SCHEMA = {
    1: """
        CREATE TABLE users (id TEXT PRIMARY KEY NOT NULL, username TEXT UNIQUE NOT NULL, password_hash TEXT NOT NULL,
            created_at TEXT NOT NULL, leaderboard_opt_in INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE sync_state (user_id TEXT PRIMARY KEY NOT NULL REFERENCES users (id) ON DELETE CASCADE,
            stats_json TEXT NOT NULL, achievements_json TEXT NOT NULL, progress_json TEXT NOT NULL,
            last_modified TEXT NOT NULL);
        CREATE TABLE daily_challenges (date TEXT PRIMARY KEY NOT NULL, seed INTEGER NOT NULL, goal_json TEXT NOT NULL);
        CREATE TABLE leaderboard (user_id TEXT PRIMARY KEY NOT NULL REFERENCES users (id) ON DELETE CASCADE,
            display_name TEXT NOT NULL, best_time_secs INTEGER, best_score INTEGER, recorded_at TEXT NOT NULL);
        CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL);
    """,
    2: """
        CREATE TABLE replays (id TEXT PRIMARY KEY NOT NULL,
            user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, seed INTEGER NOT NULL,
            draw_mode TEXT NOT NULL, mode TEXT NOT NULL, time_seconds INTEGER NOT NULL,
            final_score INTEGER NOT NULL, recorded_at TEXT NOT NULL, received_at TEXT NOT NULL,
            replay_json TEXT NOT NULL);
    """,
    3: """
        CREATE TABLE refresh_tokens (jti TEXT PRIMARY KEY NOT NULL,
            user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, expires_at TEXT NOT NULL);
    """,
    4: "CREATE INDEX replays_received ON replays (received_at)",
    5: "ALTER TABLE users ADD COLUMN avatar_url TEXT",
    6: """
        CREATE TABLE analytics_events (id TEXT PRIMARY KEY NOT NULL, user_id TEXT, session_id TEXT NOT NULL,
            event_type TEXT NOT NULL, payload TEXT NOT NULL, client_time TEXT NOT NULL, received_at TEXT NOT NULL);
    """,
}


def user(id=ANN, username="ann", **changes):
    """A row of `users`."""
    return {
        "id": id,
        "username": username,
        "password_hash": HASH,
        "created_at": "2026-05-19T10:11:12.123456789+00:00",
        "leaderboard_opt_in": 0,
        "avatar_url": None,
        **changes,
    }


def payload(user_id=ANN, **changes):
    """The payload that a player pulls, with changes like stats__games_won=5."""
    return progress_of(user_id, **changes)


def progress(payload):
    """The row of `sync_state` for a pulled payload."""
    return {
        "user_id": payload["user_id"],
        "stats_json": json.dumps(payload["stats"]),
        "achievements_json": json.dumps(payload["achievements"]),
        "progress_json": json.dumps(payload["progress"]),
        "last_modified": payload["last_modified"],
    }


def entry(user_id=ANN, **changes):
    """A row of `leaderboard`, with the opt-in of its player."""
    return {
        "user_id": user_id,
        "display_name": "Ann",
        "best_time_secs": 95,
        "best_score": 7200,
        "recorded_at": TIME,
        "leaderboard_opt_in": 1,
        **changes,
    }


def replay(number=1, user_id=ANN, received_at=TIME, **changes):
    """A row of `replays`; its text has its keys in that server's order."""
    body = {"schema_version": 2, "seed": 2**64 - 1, **REPLAY_HEADER, "recorded_at": "2026-11-20", "moves": []}
    return {
        "id": f"{number:08x}-2222-4222-8222-222222222222",
        "user_id": user_id,
        "seed": -1,
        "draw_mode": body["draw_mode"],
        "mode": body["mode"],
        "time_seconds": body["time_seconds"],
        "final_score": body["final_score"],
        "recorded_at": body["recorded_at"],
        "received_at": received_at,
        "replay_json": json.dumps(body),
        **changes,
    }


def token(number=1, user_id=ANN, expires_at="2026-12-20T12:00:00+00:00", **changes):
    """A row of `refresh_tokens`."""
    return {
        "jti": f"{number:08x}-3333-4333-8333-333333333333",
        "user_id": user_id,
        "expires_at": expires_at,
        **changes,
    }


def event(number=1, user_id="ann", **changes):
    """A row of `analytics_events`."""
    return {
        "id": f"{number:08x}-4444-4444-8444-444444444444",
        "user_id": user_id,
        "session_id": "s",
        "event_type": "game_won",
        "payload": "{}",
        "client_time": TIME,
        "received_at": TIME,
        **changes,
    }


def challenge(day):
    """A row of `daily_challenges`, with the same challenge as here."""
    made = json.loads(msgspec.json.encode(daily_challenge(date.fromisoformat(day))))
    seed = made["seed"]
    return {"date": day, "seed": seed - 2**64 if seed >= 2**63 else seed, "goal_json": json.dumps(made)}


def create(path, level=LEVELS[-1], *, wal=True):
    """Make an empty file of this schema level; return its path."""
    with closing(sqlite3.connect(path)) as connection:
        if wal:
            connection.execute("PRAGMA journal_mode = WAL")
        for number in range(1, level + 1):
            connection.executescript(SCHEMA[number])
            connection.execute("INSERT INTO _sqlx_migrations VALUES (?, 'made by a test')", (number,))
        connection.commit()
    return path


def write(path, **tables):
    """Add rows to tables without columns that the level lacks; foreign keys aren't enforced, as on that server."""
    with closing(sqlite3.connect(path)) as connection:
        for table, rows in tables.items():
            known = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
            for row in rows:
                row = {name: value for name, value in row.items() if name in known}
                names, places = ", ".join(row), ", ".join("?" * len(row))
                connection.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})", [*row.values()])
        connection.commit()
    return path


def change(path, statement, *parameters):
    """Run a statement like that server."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement, parameters)
        connection.commit()


def read(path, table):
    """The rows of a table."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]


def open_by_server(path):
    """A connection like the one that the server keeps open; closed at the end of a `with`."""
    return closing(sqlite3.connect(path))
