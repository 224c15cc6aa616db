"""The import of an original server's data, table by table (docs/moving-in.md)."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from ..postgres.database import Database
from ..postgres.transaction import Statements, Transaction
from ..process.tasks import shielded
from ..rules.shapes import MAX_BODY, NIL
from ..storage.operators import daily_numbers
from . import players, records
from . import rows as rules
from .owners import Owners
from .rows import Image, OriginalEntry, OriginalProgress, OriginalReplay, ReportedEvent, User
from .sqlite_file import OriginalFile
from .sqlite_values import Row, Unusable
from .tally import Tally

BATCH = 200  # rows in a transaction
BATCH_BYTES = 1_048_576
AVATARS = 4  # images in a transaction, of up to a MiB each

T = TypeVar("T")
R = TypeVar("R")
Look = Callable[[Statements, Sequence[T]], Awaitable[R]]  # returns which rows are new
Store = Callable[[Transaction, Sequence[T]], Awaitable[R]]  # stores the new rows, and returns which they are


class Import:
    """A run over all tables. `report` is called with the progress of the run; a dry run only reads."""

    def __init__(
        self,
        *,
        database: Database,
        original: OriginalFile,
        avatars: Path | None,
        tally: Tally,
        report: Callable[[str], None],
        dry: bool,
    ) -> None:
        self._database = database
        self._original = original
        self._directory = avatars
        self._tally = tally
        self._report = report
        self._dry = dry
        self._owners = Owners(tally)
        self._storing: Deferred[None] | None = None
        self._now = datetime.now(UTC)
        self._newest_classics: dict[object, datetime] = {}

    async def run(self) -> None:
        """Import everything: first players, then the rows that belong to them."""
        try:
            await self._all()
        finally:
            if self._storing is not None:  # even after a failure, let the running transaction end
                # shielded, because this code may run as a callback of the transaction that failed
                await shielded(self._storing.addErrback(lambda failure: None))

    async def _all(self) -> None:
        await self._users()
        await self._owned("sync_state", rules.read_progress, self._look_at_progress, self._store_progress)
        self._newest_classics = await self._original.read(rules.newest_classics, self._original.classics())
        await self._owned("leaderboard", self._entry, players.look_at_entries, players.store_entries)
        await self._avatars()
        await self._owned("replays", self._replay, records.fresh_replays, records.store_replays)
        await self._owned("refresh_tokens", rules.read_token, records.fresh_tokens, records.store_tokens)
        await self._spend()
        await self._events()
        await self._compare_challenges()
        if not self._dry:
            await self._database.run(daily_numbers.count_again, date.min)

    async def _users(self) -> None:
        async for batch in self._batches("users"):
            usable: list[User] = []
            for row in batch:
                try:
                    usable.append(rules.read_user(row))
                except Unusable as error:
                    self._owners.refuse(row["id"], row["username"], str(error))
            if usable:
                found = await self._apply(usable, players.look_at_users, players.store_users)
                for user in usable:
                    self._owners.settle(user, found[user.id])

    async def _owned(
        self, table: str, read: Callable[[Row], T], look: Look[T, set[str]], store: Store[T, set[str]]
    ) -> None:
        """Import a table of players' rows: `read` makes a value of a row, `look` and `store` take many values."""
        key = self._original.key(table)
        async for batch in self._batches(table):
            usable: list[T] = []
            for row in batch:
                if not row["owned"]:
                    self._tally.warn(table, row[key], "belongs to no player")
                elif self._owners.are_here(table, row[key], row["user_id"]):
                    try:
                        usable.append(read(row))
                    except Unusable as error:
                        self._tally.refuse(table, row[key], str(error))
            if table == "leaderboard":
                await self._warn_of_hidden(usable)
            await self._store(table, usable, look, store)

    def _entry(self, row: Row) -> OriginalEntry:
        newest = self._newest_classics.get(row["user_id"])
        return self._warned("leaderboard", row, rules.read_entry(row, newest, self._now))

    def _replay(self, row: Row) -> OriginalReplay:
        return self._warned("replays", row, rules.read_stored_replay(row, self._now))

    def _warned(self, table: str, row: Row, read: tuple[T, list[str]]) -> T:
        value, warnings = read
        for warning in warnings:
            self._tally.warn(table, row[self._original.key(table)], warning)
        return value

    async def _store(self, table: str, rows: Sequence[T], look: Look[T, set[str]], store: Store[T, set[str]]) -> None:
        """Begin to store rows when the previous ones are stored; the caller reads the next rows at the same time."""

        async def work() -> None:
            new = await self._apply(rows, look, store)
            self._tally.imported(table, len(new))
            self._tally.present(table, len(rows) - len(new))

        await self._stored()
        if rows:
            self._storing = Deferred.fromCoroutine(work())

    async def _stored(self) -> None:
        if self._storing is not None:
            await shielded(self._storing)
            self._storing = None

    async def _apply(self, rows: Sequence[T], look: Look[T, R], store: Store[T, R]) -> R:
        if self._dry:
            return await self._database.run(look, rows)
        return await self._database.transact(store, rows)

    async def _look_at_progress(self, statements: Statements, progress: Sequence[OriginalProgress]) -> set[str]:
        return set(await self._merged(statements, progress))

    async def _store_progress(self, transaction: Transaction, progress: Sequence[OriginalProgress]) -> set[str]:
        await players.lock(transaction, [each.user_id for each in progress])
        documents = await self._merged(transaction, progress)
        if documents:
            await players.save_progress(transaction, documents)
        return set(documents)

    async def _merged(self, statements: Statements, progress: Sequence[OriginalProgress]) -> dict[str, bytes]:
        """Return the merged documents that the import changes, by player."""
        stored = await players.progress(statements, [each.user_id for each in progress])
        documents: dict[str, bytes] = {}
        for each in progress:
            document = rules.merged(stored.get(each.user_id), each.document, datetime.now(UTC))
            if document is not None:
                documents[each.user_id] = document
        return documents

    async def _warn_of_hidden(self, entries: Sequence[Any]) -> None:
        hidden = [entry.user_id for entry in entries if not entry.visible]
        if hidden:
            for user_id in sorted(await self._database.run(players.visible, hidden)):
                self._tally.warn("leaderboard", user_id, "is hidden there, and stays visible here")

    async def _avatars(self) -> None:
        have = (row for row in self._original.rows("users") if row["avatar_url"] is not None)
        if self._directory is None:
            count = await self._original.read(_length, have)
            if count:
                self._tally.warn("avatars", None, f"use --avatars DIR to import the avatars from there: {count:,}")
            return
        async for batch in self._batches("avatars", have, AVATARS):
            images: list[Image] = []
            for row in batch:
                if self._owners.are_here("avatars", row["id"], row["id"]):
                    try:
                        images.append(self._image(row, self._directory))
                    except Unusable as error:
                        self._tally.refuse("avatars", row["id"], str(error))
            await self._store("avatars", images, players.look_at_avatars, players.store_avatars)

    def _image(self, row: Row, directory: Path) -> Image:
        extension = rules.avatar_extension(row)
        file = directory / f"{row['id']}.{extension}"
        try:
            if not file.is_file():
                raise Unusable(f"there is no file {file.name}")
            with file.open("rb") as opened:
                content = opened.read(MAX_BODY + 1)
        except OSError as error:
            raise Unusable(f"{file.name}: {error.strerror}") from None
        if len(content) > MAX_BODY:
            raise Unusable("avatar must be at most 1 MB")
        rules.check_image(extension, content)
        return Image(row["id"], extension, content)

    async def _spend(self) -> None:
        """Delete refresh tokens of an earlier import that are live here but were spent there."""
        spent, after = 0, NIL
        if not self._original.has("refresh_tokens"):
            return
        while live := await self._database.run(records.live_tokens, after):
            after = max(live)
            gone = live.keys() - await self._original.read(self._original.has_tokens, live.keys())
            if gone and not self._dry:
                spent += await self._database.transact(records.spend_tokens, gone, {live[jti] for jti in gone})
            elif gone:
                spent += len(gone)
        self._tally.spent = spent

    async def _events(self) -> None:
        async for batch in self._batches("analytics_events"):
            usable: dict[str, ReportedEvent] = {}
            for row in batch:
                try:
                    reported = self._owners.rename(rules.read_event(row))
                except Unusable as error:
                    self._tally.refuse("analytics_events", row["id"], str(error))
                    continue
                if reported.event.id in usable:
                    self._tally.present("analytics_events")  # the same id in another spelling
                usable.setdefault(reported.event.id, reported)
            await self._store("analytics_events", [*usable.values()], records.fresh_events, records.store_events)

    async def _compare_challenges(self) -> None:
        async for batch in self._batches("daily_challenges"):
            for row in batch:
                difference = rules.challenge_difference(row)
                if difference is None:
                    self._tally.present("daily_challenges")
                else:
                    self._tally.warn("daily_challenges", row["date"], difference)

    async def _batches(self, table: str, rows: Iterator[Row] | None = None, most: int = BATCH) -> Any:
        """Yield the rows of a table in lists."""
        total = await self._original.read(self._original.count, "users" if table == "avatars" else table)
        batches, done = _split(self._original.rows(table) if rows is None else rows, most), 0
        while batch := await self._original.read(next, batches, None):
            self._tally.read(table, len(batch))
            yield batch
            done += len(batch)
            self._report(f"{table}: {done:,} of {total:,}")
        await self._stored()


def _length(rows: Iterator[Row]) -> int:
    return sum(1 for _ in rows)


def _split(rows: Iterator[Row], most: int) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        if len(batch) == most or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
