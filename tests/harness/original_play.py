"""Playing on the original server: a file with its schema, and the statements with which it writes.

Values that a player sends are stored unchecked, as on that server, which only bounds the length of a display name.
`tests/commands/vectors/` has such a file, made by playing on the server itself, with its avatars and its answers.
"""

import gzip
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from tests.harness.constants import ROOT
from tests.harness.original_server import HASH
from tests.harness.payloads import progress_of

VECTORS = ROOT / "tests" / "commands" / "vectors"
AVATARS = VECTORS / "avatars"

_INSERT_REPLAY = """
    INSERT INTO replays (id, user_id, seed, draw_mode, mode, time_seconds, final_score, recorded_at, received_at,
        replay_json)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_BEST_REPLAY = """
    UPDATE leaderboard SET best_score = ?, best_time_secs = ?, recorded_at = ?
    WHERE user_id = ? AND (best_score IS NULL OR best_score < ?)
"""
_BEST_PUSH = """
    UPDATE leaderboard SET best_score = max(coalesce(best_score, ?1), ?1),
        best_time_secs = min(coalesce(best_time_secs, ?2), ?2), recorded_at = ?3
    WHERE user_id = ?4 AND EXISTS (SELECT 1 FROM users WHERE id = ?4 AND leaderboard_opt_in = 1)
"""


def played_file(directory):
    """Unpack the file that was made by playing on the original server; return its path."""
    path = directory / "played.sqlite3"
    path.write_bytes(gzip.decompress((VECTORS / "original.sqlite3.gz").read_bytes()))
    return path


def played_answers():
    """The answers of that server: `players` with passwords, tokens, replays and pulls, and `leaderboard_rows`."""
    return json.loads(gzip.decompress((VECTORS / "answers.json.gz").read_bytes()))


def signed(number):
    """The signed 64-bit integer with the bits of an unsigned one, as that server stores it."""
    return number - 2**64 if number >= 2**63 else number


class OriginalServer:
    """The original server without players; `path` is its file."""

    def __init__(self, directory):
        self.path = played_file(directory)
        self.now = datetime.now(UTC) - timedelta(days=1)
        for table in ("users", "sync_state", "leaderboard", "replays", "refresh_tokens", "analytics_events"):
            self.run(f"DELETE FROM {table}")

    def run(self, statement, *parameters):
        """Run a statement."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(statement, parameters)
            connection.commit()

    def time(self):
        """The next second, with nanoseconds, as the Rust library chrono writes it."""
        self.now += timedelta(seconds=1)
        return self.now.strftime("%Y-%m-%dT%H:%M:%S.%f789+00:00")

    def join(self, username, display_name=None):
        """Add a player, who opts in if a display name is given; return the id."""
        user_id = str(uuid4())
        self.run(
            "INSERT INTO users (id, username, password_hash, created_at) VALUES (?, ?, ?, ?)",
            *(user_id, username, HASH, self.time()),
        )
        if display_name is not None:
            self.opt_in(user_id, display_name)
        return user_id

    def opt_in(self, user_id, display_name):
        """POST /api/leaderboard/opt-in."""
        self.run("UPDATE users SET leaderboard_opt_in = 1 WHERE id = ?", user_id)
        self.run(
            "INSERT INTO leaderboard (user_id, display_name, recorded_at) VALUES (?, ?, ?)"
            " ON CONFLICT (user_id) DO UPDATE SET display_name = excluded.display_name",
            *(user_id, display_name, self.time()),
        )

    def opt_out(self, user_id):
        """DELETE /api/leaderboard/opt-in."""
        self.run("UPDATE users SET leaderboard_opt_in = 0 WHERE id = ?", user_id)

    def push(self, user_id, best_single_score, fastest_win_seconds):
        """POST /api/sync/push."""
        payload = progress_of(
            user_id, stats__best_single_score=best_single_score, stats__fastest_win_seconds=fastest_win_seconds
        )
        parts = (json.dumps(payload[part]) for part in ("stats", "achievements", "progress"))
        self.run("INSERT OR REPLACE INTO sync_state VALUES (?, ?, ?, ?, ?)", user_id, *parts, self.time())
        self.run(_BEST_PUSH, best_single_score, signed(fastest_win_seconds), self.time(), user_id)

    def upload(self, user_id, received_at=None, **changes):
        """POST /api/replays; return the id."""
        body = {
            "draw_mode": "DrawOne",
            "final_score": 605,
            "mode": "Classic",
            "moves": [],
            "recorded_at": "2026-11-20",
            "schema_version": 2,
            "seed": 2**63 + 5,
            "time_seconds": 157,
            **changes,
        }
        replay_id, score, seconds = str(uuid4()), body["final_score"], body["time_seconds"]
        self.run(
            _INSERT_REPLAY,
            *(replay_id, user_id, signed(body["seed"]), body["draw_mode"], body["mode"], seconds, score),
            *(body["recorded_at"], received_at or self.time(), json.dumps(body, separators=(",", ":"))),
        )
        if body["mode"] == "Classic":
            self.run(_BEST_REPLAY, score, seconds, body["recorded_at"], user_id, score)
        return replay_id
