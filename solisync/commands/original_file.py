"""The original server's database: a SQLite file, opened read-only, also while that server runs (docs/moving-in.md).

What is read is a copy of the file, of one moment. So the file is read for as long as copying takes, and with a journal
of the old kind that server waits no longer than that for its next write. The copy has no name, and is gone with the
process, however that ends.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

from twisted.internet.base import ReactorBase
from twisted.internet.threads import deferToThreadPool

from ..errors import FatalError
from ..rules.cells import Row

MAGIC = b"SQLite format 3\0"
BUSY_SECONDS = 10.0  # how long to wait for that server to end a write
PAGES = 2_000  # copied at a time: 8 MiB

# The columns that are read of each table. Tables other than the first, and columns in OPTIONAL, may be absent: files of
# older versions lack some.
TABLES = {
    "users": ("id", "username", "password_hash", "created_at", "leaderboard_opt_in", "avatar_url"),
    "sync_state": ("user_id", "stats_json", "achievements_json", "progress_json", "last_modified"),
    "leaderboard": ("user_id", "display_name", "best_time_secs", "best_score", "recorded_at"),
    "replays": ("id", "user_id", "received_at", "replay_json"),
    "refresh_tokens": ("jti", "user_id", "expires_at"),
    "analytics_events": ("id", "user_id", "session_id", "event_type", "payload", "client_time", "received_at"),
    "daily_challenges": ("date", "seed", "goal_json"),
}
OPTIONAL = {"users": {"leaderboard_opt_in", "avatar_url"}}
OWNED = ("sync_state", "leaderboard", "replays", "refresh_tokens")  # by a player, whom `user_id` names


class OriginalFile:
    """A copy of such a file, to read rows from."""

    def __init__(self, path: Path, copy: sqlite3.Connection) -> None:
        """Check the schema; raises FatalError for another database."""
        self._path = path
        self._copy = copy
        copy.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        self._columns = {table: {row[1] for row in self._run(f"PRAGMA table_info({table})")} for table in TABLES}
        if not self._columns["users"]:
            raise FatalError(f"solisync: {path} is no database of an original server: it has no table users")
        for table, known in self._columns.items():
            missing = {*TABLES[table]} - known - OPTIONAL.get(table, set())
            if known and missing:
                names = ", ".join(sorted(missing))
                raise FatalError(f"solisync: {path} is no database of an original server: {table} lacks {names}")

    @classmethod
    async def open(cls, path: Path, reactor: ReactorBase, report: Callable[[str], None]) -> "OriginalFile":
        """Copy the file in a thread; `report` is called with how far that has come. Raises FatalError."""
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise FatalError(f"solisync: {path} is no SQLite database")
        stopped = Event()

        def watch(status: int, remaining: int, total: int) -> None:
            if stopped.is_set():
                raise InterruptedError
            reactor.callFromThread(report, f"copying the file: {100 * (total - remaining) // max(total, 1)} %")

        try:
            return cls(path, await deferToThreadPool(reactor, reactor.getThreadPool(), _copied, path, watch))
        finally:
            stopped.set()

    def count(self, table: str) -> int:
        """How many rows a table has; 0 for one that is absent."""
        if not self._columns[table]:
            return 0
        ((count,),) = self._run(f"SELECT count(*) FROM {table}")  # noqa: S608
        return int(count)

    def has(self, table: str) -> bool:
        """Whether the file has this table."""
        return bool(self._columns[table])

    def key(self, table: str) -> str:
        """The column that names a row."""
        return TABLES[table][0]

    def rows(self, table: str) -> Iterator[Row]:
        """The rows of a table, with their columns; None for those that the file lacks.

        Of what is owned also `owned`, whether there is such a player, and that player's `leaderboard_opt_in`.
        """
        if not self._columns[table]:
            return
        columns = {name: self._column(table, name) for name in TABLES[table]}
        source = table
        if table in OWNED:
            columns |= {
                "owned": "users.id IS NOT NULL",
                "leaderboard_opt_in": self._column("users", "leaderboard_opt_in"),
            }
            source = f"{table} LEFT JOIN users ON users.id = {table}.user_id"
        names = tuple(columns)
        for values in self._run(f"SELECT {', '.join(columns.values())} FROM {source}"):  # noqa: S608
            yield dict(zip(names, values, strict=True))

    def has_tokens(self, ids: Collection[str]) -> set[str]:
        """Those of these refresh tokens whose records the file has."""
        places = ", ".join("?" * len(ids))
        found = self._run(f"SELECT jti FROM refresh_tokens WHERE jti IN ({places})", *ids)  # noqa: S608
        return {jti for (jti,) in found}

    def close(self) -> None:
        """Delete the copy."""
        self._copy.close()

    def _column(self, table: str, name: str) -> str:
        return f"{table}.{name}" if name in self._columns[table] else "NULL"

    def _run(self, sql: str, *parameters: object) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._copy.execute(sql, parameters)
        except sqlite3.Error as error:
            raise FatalError(f"solisync: {self._path}: {error}") from None


def _copied(path: Path, watch: Callable[[int, int, int], None]) -> sqlite3.Connection:
    copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # a file that has no name
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)) as source:
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()  # from here on it stays as it is
            source.backup(copy, pages=PAGES, progress=watch)
    except sqlite3.Error as error:
        copy.close()
        raise FatalError(f"solisync: {path}: {error}") from None
    return copy
