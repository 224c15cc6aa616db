"""One connection to a real PostgreSQL: its settings, what it sends, and what it leaves when it ends."""

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from psycopg2.extensions import parse_dsn
from twisted.internet.defer import gatherResults

from solisync.errors import ConnectionFailed, ConnectionLost, DatabaseError, Declined
from solisync.postgres import TIMES, PoolTimes, opening
from solisync.postgres.connection import Connection
from solisync.postgres.migrate import load_migrations, migrate
from solisync.postgres.opening import open_connection
from solisync.postgres.statement import Statement
from solisync.storage import STATEMENTS
from tests.harness.concurrency import until, wait_for
from tests.harness.postgres import run_sql
from tests.harness.processes import descriptors
from tests.postgres.notes import SHOW, add, backends, notes, pid, started, terminate


async def test_every_connection_bounds_idle_transactions(make_database):
    """A node that vanishes during a transaction keeps its locks for seconds only."""
    show = await make_database().run(lambda transaction: transaction.run((SHOW, "idle_in_transaction_session_timeout")))
    assert show == [("10s",)]


@pytest.mark.parametrize("bounded", [True, False])
async def test_times_are_in_utc_in_any_time_zone_of_the_server(reactor, empty_database, bounded):
    """Most installed servers use another time zone."""
    run_sql(empty_database, f"ALTER DATABASE {empty_database.partition('dbname=')[2]} SET timezone = 'Asia/Kolkata'")
    connection = await open_connection(reactor, empty_database, bounded=bounded)
    ((moment,),) = await connection.execute("SELECT now()")
    assert moment.utcoffset().total_seconds() == 0
    connection.close()


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize(
    ("setting", "preferred", "ours"),
    [
        ("default_transaction_isolation", "repeatable read", "read committed"),
        ("default_transaction_isolation", "serializable", "read committed"),
        ("synchronous_commit", "off", "on"),
        ("synchronous_commit", "local", "local"),
        ("synchronous_commit", "remote_apply", "remote_apply"),
    ],
)
async def test_connection_sets_what_correctness_needs(reactor, empty_database, setting, preferred, ours, bounded):
    """Each statement sees earlier commits, and commits survive a crash, even if the server has other defaults."""
    run_sql(empty_database, f"ALTER DATABASE {empty_database.partition('dbname=')[2]} SET {setting} = '{preferred}'")
    connection = await open_connection(reactor, empty_database, bounded=bounded)
    assert await connection.execute(f"SHOW {setting}") == [(ours,)]
    connection.close()


SESSION = "SELECT name, setting FROM pg_settings WHERE source = 'session' AND name <> 'TimeZone' ORDER BY name"
LIMITS = ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")


@pytest.mark.parametrize("given", ["nothing", "limits", "wrong"])
async def test_connection_behind_a_pooler_reports_missing_role_settings(reactor, empty_database, monkeypatch, given):
    """A setting would stay for other clients, so the connection sets none."""
    database = empty_database.partition("dbname=")[2]
    if given != "nothing":
        for name in LIMITS:
            run_sql(empty_database, f"ALTER DATABASE {database} SET {name} = '3s'")
    if given == "wrong":
        run_sql(empty_database, f"ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'")
    run_sql(
        empty_database, f"ALTER DATABASE {database} SET synchronous_commit = '{'off' if given == 'wrong' else 'on'}'"
    )
    monkeypatch.setattr(opening, "_backend_pid", lambda connection: -1)  # a pooler has numbers of its own
    connection = await open_connection(reactor, empty_database)
    assert await connection.execute(SESSION) == []
    assert connection.server.pooled
    lacking = {"nothing": LIMITS, "limits": (), "wrong": ("default_transaction_isolation", "synchronous_commit")}
    assert connection.server.lacking == ", ".join(lacking[given])
    connection.close()


async def test_pooler_with_one_server_connection_per_client_gets_all_settings(reactor, dsn, monkeypatch):
    monkeypatch.setattr(opening, "_backend_pid", lambda connection: -1)
    connection = await open_connection(reactor, dsn, statements=(SHOW,))
    assert dict(await connection.execute(SESSION)).keys() >= set(LIMITS)
    connection.close()


async def test_connection_without_a_pooler_needs_no_role_settings(reactor, dsn):
    """The connection sets its own limits, with prepared statements or without."""
    connection = await open_connection(reactor, dsn)
    assert dict(await connection.execute(SESSION)).keys() >= set(LIMITS)
    assert (connection.server.pooled, connection.server.lacking) == (False, "")
    connection.close()


async def test_unbounded_connection_lifts_the_limits_of_the_role(reactor, empty_database):
    """A role that has limits for a pooler has them without a pooler too."""
    role = f"ROLE CURRENT_USER IN DATABASE {empty_database.partition('dbname=')[2]}"
    for name in LIMITS:
        run_sql(empty_database, f"ALTER {role} SET {name} = '3s'")
    connection = await open_connection(reactor, empty_database, bounded=False)
    assert [await connection.execute(f"SHOW {name}") for name in LIMITS] == [[("0",)]] * len(LIMITS)
    connection.close()


@pytest.mark.parametrize("port", [" port=5432", ""])
async def test_connection_reports_host_and_port_of_its_server(reactor, dsn, port):
    """The DSN may or may not name a port; two connections report the same."""
    made = [await open_connection(reactor, dsn.replace(" port=5432", port)) for _ in "ab"]
    host = dsn.partition("host='")[2].partition("'")[0]
    assert {connection.server.name for connection in made} == {f"{host}:5432"}
    assert len({connection.server for connection in made}) == 1
    for connection in made:
        connection.close()


@pytest.mark.parametrize("size", [1, 10_000_000])
async def test_sending_to_a_lost_server_fails_immediately(reactor, dsn, size):
    """libpq may close the socket while it sends. The reactor then watches new sockets with the same number."""
    before = descriptors(os.getpid())
    doomed = [await open_connection(reactor, dsn) for _ in range(3)]
    for ((number,),) in [await connection.execute("SELECT pg_backend_pid()") for connection in doomed]:
        terminate(dsn, number)
    wait_for(lambda: not backends(dsn))  # the reactor does not run during the wait
    for connection in doomed:
        with pytest.raises(ConnectionLost):
            await connection.execute("SELECT %s", ("x" * size,))
    assert descriptors(os.getpid()) <= before
    await check_new_connections(reactor, dsn)


async def test_closed_connection_leaves_no_trace_in_the_reactor(reactor, dsn):
    """The reactor watches new sockets that get the file descriptor of a connection closed during a statement."""
    for _ in range(3):
        doomed = [await open_connection(reactor, dsn) for _ in range(5)]
        running = [started(connection.execute("SELECT pg_sleep(0.2)")) for connection in doomed]
        for connection in doomed:
            connection.close()
        for outcome in running:
            with pytest.raises(DatabaseError):
                await outcome
        await check_new_connections(reactor, dsn)


async def test_attempt_to_connect_waits_for_one_event_at_a_time(reactor, dsn):
    """An event for the former owner of its file descriptor leaves no registration that libpq doesn't know of."""
    attempt = Connection(reactor, TIMES)
    outcome = attempt.connect(dsn)
    assert attempt in reactor.getWriters()
    attempt.doRead()
    assert (attempt in reactor.getReaders(), attempt in reactor.getWriters()) == (True, False)
    await outcome
    attempt.close()


async def test_connection_is_one_of_txpostgres(reactor, dsn):
    """Cursors and `runQuery` of txpostgres work on it, between its own statements; its `cancel` is refused."""
    connection = await open_connection(reactor, dsn)
    for number in range(3):
        cursor = await connection.cursor().execute("SELECT %s + 1", (number,))
        assert cursor.fetchall() == [(number + 1,)]
        assert await connection.runQuery("SELECT pg_backend_pid()") == await connection.execute(
            "SELECT pg_backend_pid()"
        )
    running = connection.runQuery("SELECT pg_sleep(0.1)::text")
    with pytest.raises(NotImplementedError):
        connection.cancel(running)
    assert await running == [("",)]
    connection.close()


async def check_new_connections(reactor, dsn):
    """Open more connections than were closed and use all of them at the same time."""
    fresh = [await open_connection(reactor, dsn) for _ in range(10)]
    answers = await gatherResults([started(connection.execute("SELECT 1")) for connection in fresh])
    assert answers == [[(1,)]] * 10
    for connection in fresh:
        connection.close()


async def test_connecting_to_a_silent_server_times_out(reactor, black_hole):
    began = time.monotonic()
    port = parse_dsn(black_hole)["port"]
    with pytest.raises(ConnectionFailed, match=rf"^connection to server .*{port}.* failed: no answer within 0\.2 s$"):
        await open_connection(reactor, black_hole, times=PoolTimes(connect=0.2))
    assert 0.2 <= time.monotonic() - began < 10 * 0.2


async def test_failing_handler_of_a_notification_harms_no_other(reactor, dsn, no_lost_failures):
    """The failure is logged, and the connection delivers the next notification."""
    heard = []

    def hear(payload):
        heard.append(payload)
        if payload == "bad":
            raise LookupError(payload)

    connection = await open_connection(reactor, dsn)
    try:
        await connection.listen("notes", hear)
        await connection.execute("SELECT pg_notify('notes', 'bad'), pg_notify('notes', 'good')")
        await until(reactor, lambda: len(heard) == 2)
        assert (heard, await connection.execute("SELECT 1")) == (["bad", "good"], [(1,)])
        assert len(no_lost_failures) == 1
        no_lost_failures.clear()
    finally:
        connection.close()


PREPARED = Statement("prepared_here", "SELECT 1")
REMEDY = "behind a pooler in transaction mode, set SOLISYNC_PREPARED_STATEMENTS=off$"


async def test_pooler_that_shares_a_prepared_connection_is_named_with_the_remedy(reactor, dsn):
    """A new connection with a prepared statement belongs to another client, so it is given up."""
    with pytest.raises(ConnectionFailed, match=REMEDY):
        await open_connection(reactor, dsn, statements=(PREPARED, PREPARED))


@pytest.mark.parametrize("pooled", [True, False])
async def test_pooler_that_forgets_prepared_statements_is_named_with_the_remedy(reactor, dsn, pooled):
    """Without a pooler, a vanished statement is an error of another kind."""
    connection = await open_connection(reactor, dsn, statements=(PREPARED,))
    connection.server = replace(connection.server, pooled=pooled)
    try:
        await connection.execute("DEALLOCATE ALL")
        with pytest.raises(DatabaseError, match=REMEDY if pooled else "does not exist$") as raised:
            await connection.run((PREPARED,))
        assert isinstance(raised.value, Declined) is pooled
    finally:
        connection.close()


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("text", ["%", "%s %(1)s %%", "$1", "\\", "'; --", '"', "\n\t\x01", "ünï 🂡", "", "\\x00"])
async def test_parameters_are_taken_literally(make_database, prepared, text):
    """No part of a parameter is read as syntax, prepared or not."""
    echo = Statement("echo", "SELECT $1::text, '%', 7 % $2::int, $1::text")
    database = make_database(statements=(echo,) if prepared else ())
    assert await database.run(lambda transaction: transaction.run((echo, text, 4))) == [(text, "%", 3, text)]


@pytest.mark.parametrize("prepared", [True, False])
async def test_statement_without_parameters_may_contain_a_percent_sign(make_database, prepared):
    """The per cent sign is the modulo operator and a wildcard, prepared or not."""
    modulo = Statement("modulo", "SELECT 7 % 4, 'abc' LIKE 'a%'")
    database = make_database(statements=(modulo,) if prepared else ())
    assert await database.run(lambda transaction: transaction.run((modulo,))) == [(3, True)]


async def test_unsendable_parameter_fails_before_it_is_sent(make_database, dsn, reactor):
    """U+0000 and lone surrogates are examples; the transaction is rolled back."""
    database = make_database()
    before = await database.run(pid)

    async def bad(transaction, text):
        await add(transaction, 1)
        await transaction.run((SHOW, text))

    for text in ("a\0b", "\ud800"):
        with pytest.raises(ValueError):
            await database.transact(bad, text)
        with pytest.raises(ValueError):
            await database.run(lambda transaction, text=text: transaction.run((SHOW, text)))
    assert await database.run(pid) == before
    assert notes(dsn) == []
    terminate(dsn, before)
    await until(reactor, lambda: before not in dict(backends(dsn)))
    assert await database.run(pid) != before


SAMPLES = {
    "uuid": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
    "uuid[]": "{6f9619ff-8b86-4d01-b42d-00cf4fc964ff}",
    "text": "ann",
    "integer": 3,
    "integer[]": [3],
    "smallint[]": [3],
    "bigint[]": [3],
    "bytea[]": [b"\x89"],
    "timestamp with time zone[]": [datetime(2026, 4, 26, 12, tzinfo=UTC)],
    "bigint": 3,
    "boolean": True,
    "bytea": b"\x89",
    "date": "2026-04-26",
    "double precision": 0.5,
    "double precision[]": [0.5],
    "json": "{}",
    "jsonb": "{}",
    "interval": "10 s",
    "numeric": 3,
    "text[]": ["ann"],
    "timestamp with time zone": datetime(2026, 4, 26, 12, tzinfo=UTC),
}


def without_clock(value):
    """Remove the times of the database's clock from a result, so that results of the last minute are equal."""
    if isinstance(value, list | tuple):
        return [without_clock(each) for each in value]
    return "now" if isinstance(value, datetime) and abs(datetime.now(UTC) - value) < timedelta(minutes=1) else value


async def test_statements_have_the_same_result_prepared_and_unprepared(reactor, empty_database):
    """SOLISYNC_PREPARED_STATEMENTS changes no result."""
    await migrate(reactor, empty_database, load_migrations())
    run_sql(empty_database, "INSERT INTO users VALUES (%(uuid)s, %(text)s, %(text)s, now())", SAMPLES)
    live = "INSERT INTO refresh_tokens VALUES (%(uuid)s, %(uuid)s, '2030-01-01')"
    run_sql(empty_database, live, SAMPLES)
    run_sql(empty_database, "UPDATE retention_clock SET at = 'infinity'")  # or it would be behind by more each time
    prepared = await open_connection(reactor, empty_database, statements=STATEMENTS)
    plain = await open_connection(reactor, empty_database)
    types = dict(await prepared.execute("SELECT name, parameter_types::text[] FROM pg_prepared_statements"))
    assert set(types) == {statement.name for statement in STATEMENTS}
    for statement in STATEMENTS:
        parameters = [SAMPLES[kind] for kind in types[statement.name] or ()]
        outcomes = []
        for connection in (prepared, plain):
            await connection.execute("BEGIN")
            try:
                outcomes.append(without_clock(await connection.run((statement, *parameters))))
            except DatabaseError as error:
                outcomes.append(str(error))
            await connection.execute("ROLLBACK")
        assert outcomes[0] == outcomes[1], statement.name
    prepared.close()
    plain.close()
