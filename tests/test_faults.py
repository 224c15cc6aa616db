"""The service when clients hang up and the database goes away: other clients are served, and the service heals."""

import json
import os
import random
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
import pytest_twisted
from psycopg2.extensions import parse_dsn
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.logger import capturedLogs, formatEvent

from solisync.embedded.server import EmbeddedPostgres
from solisync.errors import DatabaseError, Unavailable
from solisync.postgres import TIMES, PoolTimes, opening
from solisync.postgres.database import Database
from solisync.postgres.statement import Statement
from tests.fire.servers import servers
from tests.harness.concurrency import at_once, until
from tests.harness.constants import PASSWORD, PATIENCE
from tests.harness.http_requests import ask, new_address, refresh
from tests.harness.players import players
from tests.harness.postgres import QUICK, connect, run_sql, truncate
from tests.harness.processes import free_port, postmaster
from tests.harness.service import POOL_SIZE, begin, start

PID = Statement("pid", "SELECT pg_backend_pid()")
HEAL_SECONDS = 2.0
SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "kill": signal.SIGKILL}


@pytest.fixture(scope="module")
def own_postgres(reactor, initialized):
    """A server for this module that can be stopped and killed; acknowledged writes survive a crash."""
    options = (*QUICK, "synchronous_commit=on")
    with tempfile.TemporaryDirectory(prefix="solisync faults ") as name:
        Path(name).chmod(0o755)
        server = EmbeddedPostgres(reactor=reactor, data_dir=initialized(Path(name)), options=options)
        server.claim()
        pytest_twisted.blockon(Deferred.fromCoroutine(server.start()))
        yield server
        pytest_twisted.blockon(Deferred.fromCoroutine(server.stop()))


def stop_server(server, how):
    """End the server in one of SIGNALS' ways; EmbeddedPostgres starts it again."""
    pid = postmaster(server.data_dir)
    os.kill(pid, SIGNALS[how])
    return pid


def wait_for_server(server, old):
    """Wait (in a thread) until another server than `old` accepts connections."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            connect(server.dsn).close()
            if postmaster(server.data_dir) not in (old, None):
                return time.monotonic()
        except (psycopg2.Error, OSError, IndexError):
            pass
        time.sleep(0.01)
    raise AssertionError("the server did not come back")


@pytest.mark.parametrize("how", SIGNALS)
async def test_pool_survives_a_restart_of_the_server(reactor, own_postgres, how):
    """Every connection is replaced soon after the server is back, and work waits for that within its time."""
    database = Database(reactor=reactor, size=4, statements=(PID,))
    database.open(own_postgres.dsn)
    try:
        await database.run(lambda transaction: transaction.run((PID,)))
        old = stop_server(own_postgres, how)
        back = await deferToThread(wait_for_server, own_postgres, old)
        while True:
            try:
                await database.transact(lambda transaction: transaction.run((PID,)))
                break
            except (DatabaseError, Unavailable):
                assert time.monotonic() < back + 10 * TIMES.reconnect
        print(f"{how}: healed {time.monotonic() - back:.2f} s after the server was back")
    finally:
        await database.close(0)


class Load:
    """Players who register, refresh and read their profile, and remember each answer."""

    def __init__(self, process):
        self.process = process
        self.stopped = threading.Event()
        self.registered = []
        self.statuses = Counter()
        self.successes = []  # when a request that needs the database succeeded
        self.wrong = []

    def run(self, number):
        turn = 0
        while not self.stopped.is_set():
            turn += 1
            name = f"p{number}_{turn}"
            status, pair = self.ask("POST", "/api/auth/register", {"username": name, "password": PASSWORD})
            if status != 200:
                continue
            self.registered.append(name)
            for _ in range(3):
                spent = pair["refresh_token"]
                self.ask("GET", "/api/me", bearer=pair["access_token"])
                status, pair = self.ask("POST", "/api/auth/refresh", {"refresh_token": spent})
                again, _ = self.ask("POST", "/api/auth/refresh", {"refresh_token": spent})
                if status == again == 200:
                    self.wrong.append("a token was spent twice")
                if status != 200:
                    break

    def ask(self, *words, **more):
        try:
            status, body, headers = ask(self.process, *words, **more)
        except Exception as error:
            self.wrong.append(repr(error))
            return 0, None
        self.statuses[status] += 1
        if status == 200:
            self.successes.append(time.monotonic())
        elif status >= 500:
            texts = {500: "internal server error", 503: "service unavailable"}
            if body != {"error": texts.get(status)} or (status == 503) != ("retry-after" in headers):
                self.wrong.append((status, body, headers))
        elif status not in (401, 409):
            self.wrong.append((status, body))
        return status, body


async def test_restarts_under_load_give_no_wrong_answer(own_postgres, serve, reactor):
    """No token is spent twice, and no acknowledged player is lost, in any way of ending the server."""
    process = await serve(own_postgres.dsn)
    load = Load(process)
    running = Deferred.fromCoroutine(at_once(6, load.run, range(6)))
    healed = {}
    try:
        for how in SIGNALS:
            await deferLater(reactor, 0.3)
            old = stop_server(own_postgres, how)
            back = await deferToThread(wait_for_server, own_postgres, old)
            while not any(moment > back for moment in load.successes[-50:]):
                assert time.monotonic() < back + 10 * HEAL_SECONDS, process.log[-3000:]
                await deferLater(reactor, 0.01)
            healed[how] = round(next(moment for moment in load.successes if moment > back) - back, 2)
        await deferLater(reactor, 0.3)
    finally:
        load.stopped.set()
        await running
    print(healed, dict(load.statuses), len(load.registered), "registered")
    assert load.wrong == []
    names = {name for (name,) in process.sql("SELECT username FROM users")}
    assert set(load.registered) <= names
    assert (await deferToThread(ask, process, "GET", "/api/health/ready"))[0] == 200
    assert process.stop() == 0
    assert "Unhandled" not in process.log


def hang_up(process, rng, requests):
    """Send one request and close the connection a moment later, before or after the answer."""
    method, path, body, bearer = rng.choice(requests)
    delay = rng.choice([0, rng.uniform(0, 0.005), rng.uniform(0, 0.03)])
    abort = rng.random() < 0.5
    data = json.dumps(body).encode() if body else b""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {new_address()}\r\nContent-Length: {len(data)}\r\n"
    if bearer:
        head += f"Authorization: Bearer {bearer}\r\n"
    with socket.create_connection(("127.0.0.1", process.port)) as connection:
        if abort:  # RST instead of FIN
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.sendall(head.encode() + b"\r\n" + data)
        time.sleep(delay)


async def test_hang_ups_leave_no_transaction_and_no_error(shared_dsn, serve, full):
    """Clients leave at any moment, and other clients are served as usual."""
    truncate(shared_dsn)
    seed = 20261120
    print("seed", seed)
    rng = random.Random(seed)
    process = await serve(shared_dsn, SOLISYNC_DATABASE_CONNECTIONS="2")
    everybody = players(shared_dsn, 100)
    _, ann, _ = await deferToThread(
        ask, process, "POST", "/api/auth/register", {"username": "ann", "password": PASSWORD}
    )
    requests = [("POST", "/api/auth/login", {"username": "ann", "password": PASSWORD}, None)] * 60
    requests += [("GET", "/api/me", None, ann["access_token"])] * 60
    requests += [("POST", "/api/auth/refresh", {"refresh_token": token}, None) for _, token, _ in everybody[:60]]
    requests += [("POST", "/api/auth/register", {"username": f"new{n}", "password": PASSWORD}, None) for n in range(60)]
    rngs = [random.Random(rng.random()) for _ in range(300 if full else 100)]
    await at_once(20, lambda own: hang_up(process, own, requests), rngs)

    process.sql("UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE username = 'ann')")
    ((gone,),) = process.sql("SELECT clock_timestamp()")

    def others(number):
        _, token, access = everybody[60 + number % 40]
        if number < 40:
            return refresh(process, token)[0]
        if number % 2:  # one of forty players: a player who logs in more than once a second is soon declined
            name = f"player{60 + number % 40}"
            return ask(process, "POST", "/api/auth/login", {"username": name, "password": PASSWORD})[0]
        return ask(process, "GET", "/api/me", bearer=access)[0]

    count = 500 if full else 160
    assert Counter(await at_once(10, others, range(count))) == {200: count}
    left = "SELECT state, query FROM pg_stat_activity WHERE datname = current_database() AND xact_start < %s"
    assert run_sql(shared_dsn, left, (gone,)) == []
    half_done = (
        "SELECT count(*) FROM users WHERE username LIKE 'new%' AND id NOT IN (SELECT user_id FROM refresh_tokens)"
    )
    assert run_sql(shared_dsn, half_done) == [(0,)]
    assert process.stop() == 0
    for sign in ("Unhandled", "Traceback", "after its client had disconnected"):
        assert sign not in process.log


async def test_deadline_of_a_request_holds_during_its_transaction(reactor, shared_dsn):
    """The transaction continues after the answer, here until its lock is free."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, handler_seconds=0.2)
    try:
        ((_, _, token),) = players(shared_dsn, 1)
        with closing(connect(shared_dsn)) as blocking, blocking.cursor() as cursor:
            cursor.execute("BEGIN; SELECT FROM users FOR UPDATE")
            began = time.monotonic()
            answer = await running.ask("POST", "/api/leaderboard/opt-in", body={"display_name": "Ann"}, bearer=token)
            assert (answer.status, answer.json) == (503, {"error": "service unavailable"})
            assert time.monotonic() - began < 2
            cursor.execute("COMMIT")
        shown = "SELECT display_name FROM leaderboard"
        await until(reactor, lambda: run_sql(shared_dsn, shown) == [("Ann",)])
    finally:
        await running.service.stopService()


@pytest.mark.parametrize("path", ["/health/ready", "/api/replays/recent"])
async def test_service_without_its_database_returns_503_soon(reactor, path):
    """The request waits as long as for any connection."""
    dsn = f"host=127.0.0.1 port={free_port()} user=solisync"
    running = begin(reactor, dsn, times=PoolTimes(borrow=0.2))
    try:
        began = time.monotonic()
        answer = await running.ask("GET", path)
        assert time.monotonic() - began < 2
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    finally:
        await running.service.stopService()


FULL = """
    CREATE FUNCTION fill() RETURNS trigger AS $$
    BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END
    $$ LANGUAGE plpgsql;
    CREATE TRIGGER fill BEFORE INSERT ON users EXECUTE FUNCTION fill()
"""


@pytest.mark.parametrize("settled", [0.0, 3_600.0])
@pytest.mark.parametrize("trouble", ["read only", "no room"])
async def test_write_to_a_read_only_or_full_database_returns_503(
    reactor, migrated_database, no_lost_failures, trouble, settled
):
    """The log has one line, and reads work."""
    with capturedLogs() as events:
        running = await start(reactor, migrated_database, times=PoolTimes(settled=settled))
        try:
            ((_, _, token),) = players(migrated_database, 1)
            if trouble == "no room":
                running.sql(FULL)
            else:
                name = parse_dsn(migrated_database)["dbname"]
                pool = running.service.parts.database.pool
                await until(reactor, lambda: running.at_rest)
                running.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
                running.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OF_THE_SERVICE}")
                await until(reactor, lambda: pool.replaced >= POOL_SIZE and pool.idle)
            answers = [
                await running.ask("POST", "/api/auth/register", body={"username": name, "password": PASSWORD})
                for name in ("bob", "cid", "dan")
            ]
            assert (await running.ask("GET", "/api/me", bearer=token)).status == 200
        finally:
            await running.service.stopService()
    assert {(answer.status, answer.headers["retry-after"]) for answer in answers} == {(503, "1")}
    assert no_lost_failures == []
    assert len([event for event in events if " failed (" in formatEvent(event)]) == len(answers)


OF_THE_SERVICE = "application_name = 'solisync' AND datname = current_database()"
NEWER = f"SELECT count(*) FROM pg_stat_activity WHERE {OF_THE_SERVICE} AND backend_start > %s"


async def test_statement_that_does_not_fit_the_schema_fails_alone(reactor, migrated_database, no_lost_failures):
    """A column of the leaderboard is missing. All else works on new connections; with the column, the statement too."""
    misfit = 0.1
    running = await start(reactor, migrated_database, times=PoolTimes(misfit=misfit, borrow=PATIENCE))
    size = running.service.parts.settings.database_connections

    def is_whole(since):
        ((count,),) = running.sql(NEWER, (since,))
        return count >= size and running.service.parts.database.pool.idle == size

    try:
        ((_, _, token),) = players(migrated_database, 1)

        async def statuses():
            paths = ("/api/me", "/api/sync/pull", "/api/leaderboard", "/health/ready")
            return [(await running.ask("GET", path, bearer=token)).status for path in paths]

        running.sql("ALTER TABLE leaderboard RENAME COLUMN best_score TO top_score")
        ((moment,),) = running.sql("SELECT clock_timestamp()")
        running.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OF_THE_SERVICE}")
        await until(reactor, lambda: is_whole(moment))
        assert await statuses() == await statuses() == [200, 200, 500, 200]
        assert all("leaderboard_top" in failure for failure in no_lost_failures)
        no_lost_failures.clear()
        await until(reactor, lambda: is_whole(moment))
        running.sql("ALTER TABLE leaderboard RENAME COLUMN top_score TO best_score")
        await deferLater(reactor, 2 * misfit)  # the age of connections that look for a better one
        assert await statuses() == [200, 200, 200, 200]
    finally:
        await running.service.stopService()


async def test_commit_of_unknown_outcome_is_one_log_line(reactor, new_cluster, no_lost_failures):
    """A failover has dozens of them. A traceback would be useless; the line names the server in use."""
    with servers(cluster=new_cluster) as made, capturedLogs() as events:
        primary = made.make_primary()
        running = await start(reactor, primary.dsn, times=PoolTimes(work=0.5))
        try:
            ((_, _, token),) = players(primary.dsn, 1)
            primary.wait_for_standby("nobody")
            answer = await running.ask("POST", "/api/leaderboard/opt-in", body={"display_name": "Ann"}, bearer=token)
            primary.wait_for_standby("")
        finally:
            await running.service.stopService()
    assert (answer.status, answer.json) == (500, {"error": "internal server error"})
    assert no_lost_failures == []
    lines = [formatEvent(event) for event in events]
    (line,) = [line for line in lines if " failed (" in line]
    request_id = answer.headers["x-request-id"]
    why = "outcome unknown, no answer within 0.5 s"
    assert line == f"POST /api/leaderboard/opt-in failed ({request_id}): {why}"
    assert next(line for line in lines if line.startswith("connected")).endswith(f": 127.0.0.1:{primary.port}")


@pytest.mark.parametrize(("held", "status"), [(2.0, 200), (10, 500)])
async def test_request_waits_twice_for_a_lock_held_for_long(
    reactor, migrated_database, monkeypatch, no_lost_failures, held, status
):
    """The server's limit ends the first wait for the lock on the player's row."""
    monkeypatch.setattr(opening, "_TIMEOUTS", "SET lock_timeout = '1500ms'")
    running = await start(reactor, migrated_database)
    try:
        ((user, _, token),) = players(migrated_database, 1)
        with closing(connect(migrated_database)) as blocking:
            blocking.cursor().execute("BEGIN; SELECT FROM users WHERE id = %s FOR UPDATE", (user,))
            release = reactor.callLater(held, blocking.close)
            answer = await running.ask("POST", "/api/leaderboard/opt-in", body={"display_name": "Ann"}, bearer=token)
        assert answer.status == status
        if release.active():
            release.cancel()
        assert no_lost_failures == []
    finally:
        await running.service.stopService()
