"""The original server's database: an SQLite file, opened read-only, even while that server runs (docs/moving-in.md).

The import reads a copy of the file from a single moment. So the file is in use only during the copying; with a rollback
journal, that server waits only that long for its next write. The copy has no name, and disappears when the process
ends.

The file may be hostile. A query may never end, so each query runs in a thread and can be interrupted. Values above
VALUE_MAX_BYTES aren't read. Views and computed columns are refused.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool

from ..errors import FatalError
from ..process.tasks import shielded
from .sqlite_values import Row, Unread

MAGIC = b"SQLite format 3\0"
BUSY_SECONDS = 10.0  # the longest wait for a write of that server
PAGES = 2_000  # the pages copied at a time: 8 MiB
VALUE_MAX_BYTES = 8_388_608
INTERRUPT_SECONDS = 0.05

# The columns to read of each table. Files of older versions may lack columns in OPTIONAL, and all tables but the first.
TABLES = {
    "users": ("id", "username", "password_hash", "created_at", "leaderboard_opt_in", "avatar_url"),
    "sync_state": ("user_id", "stats_json", "achievements_json", "progress_json", "last_modified"),
    "leaderboard": ("user_id", "display_name", "best_time_secs", "best_score", "recorded_at"),
    "replays": ("id", "user_id", "mode", "received_at", "replay_json"),
    "refresh_tokens": ("jti", "user_id", "expires_at"),
    "analytics_events": ("id", "user_id", "session_id", "event_type", "payload", "client_time", "received_at"),
    "daily_challenges": ("date", "seed", "goal_json"),
}
OPTIONAL = {"users": {"leaderboard_opt_in", "avatar_url"}}
CLASSICS = ("user_id", "mode", "received_at")  # columns of replays
OWNED = ("sync_state", "leaderboard", "replays", "refresh_tokens")  # tables whose rows belong to the player `user_id`


T = TypeVar("T")


class TooLargeError(FatalError):
    """A value in the file is larger than VALUE_MAX_BYTES."""


class OriginalFile:
    """A copy of such a file, from which rows are read."""

    def __init__(self, path: Path, copy: sqlite3.Connection, reactor: ReactorBase) -> None:
        """Check the schema; raise FatalError for a database of another program."""
        self._path = path
        self._copy = copy
        self._reactor = reactor
        copy.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        copy.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_MAX_BYTES)
        self._columns = {table: self._columns_of(table) for table in TABLES}
        if not self._columns["users"]:
            raise self._foreign("it has no table users")

    @classmethod
    async def open(cls, path: Path, reactor: ReactorBase, report: Callable[[str], None]) -> "OriginalFile":
        """Copy the file in a thread, and call `report` with the progress. Raises FatalError."""
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise FatalError(f"solisync: {path} is not an SQLite database")
        stopped = Event()

        def watch(status: int, remaining: int, total: int) -> None:
            if stopped.is_set():
                raise InterruptedError
            reactor.callFromThread(report, f"copying the file: {100 * (total - remaining) // max(total, 1)} %")

        try:
            copy = await deferToThreadPool(reactor, reactor.getThreadPool(), _copied, path, watch)
        finally:
            stopped.set()
        return cls(path, copy, reactor)

    async def read(self, work: Callable[..., T], *arguments: Any) -> T:
        """Call `work`, which may use the methods below, in a thread; a cancellation interrupts its query."""
        reading = deferToThreadPool(self._reactor, self._reactor.getThreadPool(), work, *arguments)
        try:
            return await shielded(reading, on_late_failure=lambda failure: None)
        except CancelledError:
            while not reading.called:  # repeatedly, because a query that hasn't begun can't be interrupted
                self._copy.interrupt()
                await deferLater(self._reactor, INTERRUPT_SECONDS)
            raise

    def count(self, table: str) -> int:
        """The number of rows of a table, 0 if the table is absent."""
        if not self._columns[table]:
            return 0
        ((count,),) = self._run(f"SELECT count(*) FROM {table}")  # noqa: S608
        return int(count)

    def has(self, table: str) -> bool:
        """Whether the file has this table."""
        return bool(self._columns[table])

    def key(self, table: str) -> str:
        """The column that identifies a row."""
        return TABLES[table][0]

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the rows of a table by column, with None for columns that the file lacks.

        Rows that belong to a player also have that player's `username` and `leaderboard_opt_in`, and `owned`, which is
        False if there is no such player.
        """
        columns = {name: self._column(table, name) for name in TABLES[table]}
        source = table
        if table in OWNED:
            columns |= {
                "owned": "users.id IS NOT NULL",
                "username": "users.username",
                "leaderboard_opt_in": self._column("users", "leaderboard_opt_in"),
            }
            source = f"{table} LEFT JOIN users ON users.id = {table}.user_id"
        return self._select(table, columns, source)

    def classics(self) -> Iterator[Row]:
        """Yield the rows of replays, with the columns for the receipt of each player's newest Classic replay."""
        return self._select("replays", {name: name for name in CLASSICS}, "replays")

    def has_tokens(self, ids: Collection[str]) -> set[str]:
        """Return which of these refresh tokens have records in the file."""
        places = ", ".join("?" * len(ids))
        found = self._run(f"SELECT jti FROM refresh_tokens WHERE jti IN ({places})", *ids)  # noqa: S608
        return {jti for (jti,) in found}

    def close(self) -> None:
        """Delete the copy."""
        self._copy.close()

    def _columns_of(self, table: str) -> set[str]:
        """Return the columns of a table, none if it is absent; raise FatalError if it isn't a table of that server."""
        stored = "SELECT sql LIKE 'CREATE TABLE %' FROM sqlite_master WHERE name = ? COLLATE NOCASE"
        kinds = {ordinary for (ordinary,) in self._run(stored, table)}
        if not kinds:
            return set()
        columns = {name: hidden for _, name, *_, hidden in self._run(f"PRAGMA table_xinfo({table})")}
        if kinds != {True} or any(columns.values()):
            raise self._foreign(f"{table} is not a table that stores all its values")
        missing = {*TABLES[table]} - columns.keys() - OPTIONAL.get(table, set())
        if missing:
            raise self._foreign(f"{table} lacks {', '.join(sorted(missing))}")
        if "rowid" in {name.lower() for name in columns}:  # it would hide the number of the row, by which rows are read
            raise self._foreign(f"{table} has a column rowid")
        return set(columns)

    def _foreign(self, why: str) -> FatalError:
        return FatalError(f"solisync: {self._path} is not the database of an original server: {why}")

    def _column(self, table: str, name: str) -> str:
        return f"{table}.{name}" if name in self._columns[table] else "NULL"

    def _select(self, table: str, columns: Mapping[str, str], source: str) -> Iterator[Row]:
        """Yield rows by rowid; in a row with too large a value, still read each of the other values."""
        if not self._columns[table]:
            return
        rowid, last = f"{table}.rowid", -(2**63)
        select = f"SELECT {{}} FROM {source} WHERE {rowid} {{}} ? ORDER BY {rowid}"  # noqa: S608
        names = ", ".join((rowid, *columns.values()))
        while True:
            try:
                for at, *values in self._run(select.format(names, ">"), last):
                    last = at
                    yield dict(zip(columns, values, strict=True))
            except TooLargeError:
                last = self._first(select.format(rowid, ">"), last)
                yield {name: self._value(select.format(column, "="), last) for name, column in columns.items()}
            else:
                return

    def _value(self, query: str, rowid: int) -> object:
        try:
            return self._first(query, rowid)
        except TooLargeError:
            return Unread.TOO_LARGE

    def _first(self, query: str, rowid: int) -> Any:
        """Return the value in the first row; there are more if the file has two players with the same id."""
        for (value,) in self._run(f"{query} LIMIT 1", rowid):
            return value
        raise FatalError(f"solisync: {self._path}: malformed, with rows that can't be found again")

    def _run(self, sql: str, *parameters: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a statement returns. Raises FatalError."""
        try:
            yield from self._copy.execute(sql, parameters)
        except sqlite3.DataError as error:
            raise TooLargeError(f"solisync: {self._path}: {error}") from None
        except sqlite3.Error as error:
            raise FatalError(f"solisync: {self._path}: {error}") from None
        except UnicodeDecodeError:  # in SQLite's message, which quotes a name from the file
            raise _malformed(self._path) from None


def _malformed(path: Path) -> FatalError:
    return FatalError(f"solisync: {path}: malformed, with names that are not text")


def _copied(path: Path, watch: Callable[[int, int, int], None]) -> sqlite3.Connection:
    copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # a temporary file without a name
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)) as source:
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()  # from here on the file can't change
            source.backup(copy, pages=PAGES, progress=watch)
    except sqlite3.Error as error:
        copy.close()
        raise FatalError(f"solisync: {path}: {error}") from None
    except UnicodeDecodeError:
        copy.close()
        raise _malformed(path) from None
    return copy
