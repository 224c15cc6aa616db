"""`solisync import-original` reads only tables, in little memory, and can be interrupted (docs/moving-in.md)."""

import signal
import struct

import pytest
from twisted.internet.threads import deferToThread

from solisync.errors import FatalError
from solisync.moving_in import sqlite_file as original_file
from tests.harness import original_server as there
from tests.harness.concurrency import until
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import SOLISYNC
from tests.harness.original_server import ANN, BEN
from tests.harness.postgres import run_sql
from tests.harness.processes import cpu_ticks

PAGE_BYTES, PAGES_AT, INTERIOR_PAGE = 4_096, 28, 5  # "Database File Format" of SQLite
CHILDREN, LEVELS = 300, 6
TICKS_OF_A_QUERY = 50  # of the processor; the rest of the import, which has begun, takes less


@pytest.fixture
def file(place):
    """An original server's file with two players who have everything but avatars."""
    path = there.create(place / "hostile.db", wal=False)
    return there.write(
        path,
        users=[there.user(), there.user(BEN, "ben")],
        sync_state=[there.progress(there.payload(user_id)) for user_id in (ANN, BEN)],
        leaderboard=[there.entry(user_id) for user_id in (ANN, BEN)],
        replays=[there.replay(1), there.replay(2), there.replay(3)],
    )


def make_endless(path, table):
    """Make the pages above the only leaf of a table lead to it 300^6 times, in a few KiB."""
    there.change(path, f"CREATE TABLE without_index AS SELECT * FROM {table}")  # an index would have an end
    there.change(path, f"DROP TABLE {table}")
    there.change(path, f"ALTER TABLE without_index RENAME TO {table}")
    with there.open_by_server(path) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
    content = path.read_bytes()
    end, begin = len(content) // PAGE_BYTES, (root - 1) * PAGE_BYTES
    leaf = content[begin : begin + PAGE_BYTES]
    content = content[:begin] + page_above(end + 1) + content[begin + PAGE_BYTES :]
    content += b"".join(page_above(end + level) for level in range(2, LEVELS + 1)) + leaf
    path.write_bytes(content[:PAGES_AT] + struct.pack(">I", end + LEVELS) + content[PAGES_AT + 4 :])


def page_above(child):
    """Return a page with equal children."""
    cell = struct.pack(">IB", child, 1)
    at = PAGE_BYTES - len(cell)
    header = struct.pack(">BHHHBI", INTERIOR_PAGE, 0, CHILDREN, at, 0, child)
    return (header + struct.pack(">H", at) * CHILDREN).ljust(at, b"\0") + cell


@pytest.mark.parametrize(("table", "number"), [("leaderboard", signal.SIGINT), ("replays", signal.SIGTERM)])
async def test_signal_ends_a_query_without_end(server, reactor, launch, file, table, number):
    """Ctrl-C and service managers end the command with status 1, even if the file keeps SQLite busy."""
    make_endless(file, table)
    running = launch(*SOLISYNC, "import-original", file, DATABASE_URL=server.dsn)
    await until(reactor, lambda: run_sql(server.dsn, "SELECT true FROM sync_states"))
    begun = cpu_ticks(running.pid)
    await until(reactor, lambda: cpu_ticks(running.pid) > begun + TICKS_OF_A_QUERY)
    running.popen.send_signal(number)
    assert await deferToThread(running.popen.wait, PATIENCE) == 1
    assert running.log == "interrupted\n"


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TABLE replays", "CREATE VIEW replays AS SELECT id, id AS user_id FROM users"),
        ("DROP TABLE replays", "CREATE VIRTUAL TABLE RePlays USING rtree (id, user_id, received_at)"),
        ("ALTER TABLE replays ADD COLUMN more TEXT AS (hex(zeroblob(150000000)))",),
    ],
    ids=["view", "virtual", "generated"],
)
async def test_view_in_place_of_a_table_is_refused(server, administrate, file, statements):
    """The command fails in one line before it reads a row: a view of 20 KiB may return gigabytes."""
    for statement in statements:
        there.change(file, statement)
    with pytest.raises(FatalError, match=r"^solisync: .*: replays is not a table that stores all its values$"):
        await administrate("import-original", file)


async def test_too_large_value_affects_only_its_row(server, administrate, file, monkeypatch):
    """The row is refused by table and id, or gets another value; all others are imported."""
    monkeypatch.setattr(original_file, "VALUE_MAX_BYTES", 100_000)
    large = "x" * 100_001
    there.change(file, "UPDATE sync_state SET stats_json = ? WHERE user_id = ?", large, ANN)
    there.change(file, "UPDATE leaderboard SET display_name = ?, recorded_at = ? WHERE user_id = ?", large, large, BEN)
    there.change(file, "UPDATE replays SET replay_json = ? WHERE rowid >= 2", large)
    done = await administrate("import-original", file, "--json", "--allow-refused")
    problems = [(each["problem"], each["id"], each["reason"]) for each in done.records if "problem" in each]
    assert problems == [
        ("refused", ANN, "stats_json is too large"),
        ("warning", BEN, "display_name is too large; the username is shown instead"),
        ("warning", BEN, "recorded_at is not a time: the time of the import is used"),
        *(("refused", there.replay(number)["id"], "replay_json is too large") for number in (2, 3)),
    ]
    counts = {each["table"]: (each["read"], each["imported"]) for each in done.records if each.get("read")}
    assert counts == {"users": (2, 2), "sync_state": (2, 1), "leaderboard": (2, 2), "replays": (3, 1)}


async def test_two_players_with_one_id_lose_no_row(server, administrate, file, monkeypatch):
    """Each of them reads the rows, and a value that is too large is refused in either."""
    monkeypatch.setattr(original_file, "VALUE_MAX_BYTES", 100_000)
    there.change(file, "CREATE TABLE doubled AS SELECT * FROM users UNION ALL SELECT * FROM users")
    there.change(file, "DROP TABLE users")
    there.change(file, "ALTER TABLE doubled RENAME TO users")
    there.change(file, "UPDATE replays SET replay_json = ? WHERE rowid = 2", "x" * 100_001)
    there.change(file, "DELETE FROM leaderboard")
    done = await administrate("import-original", file, "--json", "--allow-refused")
    problems = {(each["table"], each["id"], each["reason"]) for each in done.records if "problem" in each}
    assert problems == {("replays", there.replay(2)["id"], "replay_json is too large")}
    assert server.sql("SELECT id FROM replays ORDER BY 1") == [(there.replay(number)["id"],) for number in (1, 3)]


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (["ALTER TABLE replays ADD COLUMN ROWID TEXT"], "replays has a column rowid"),
        (
            [
                "INSERT INTO sqlite_master VALUES"
                " ('index', CAST(x'ff' AS TEXT), CAST(x'ff' AS TEXT), 2, 'CREATE INDEX nonsense')"
            ],
            "malformed, with names that are not text",
        ),
    ],
    ids=["a column rowid", "names"],
)
async def test_file_with_ambiguous_rows_is_refused_in_one_line(server, administrate, file, statements, why):
    with there.open_by_server(file) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    with pytest.raises(FatalError, match=rf"^solisync: .*: {why}$"):
        await administrate("import-original", file)
