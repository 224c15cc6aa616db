"""What every test stands on: a real PostgreSQL, the real service on a real port, and no lost failures."""

import contextlib
import functools
import gc
import inspect
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psycopg2
import pytest
import pytest_twisted
from treq.client import HTTPClient
from twisted.internet import defer
from twisted.logger import LogLevel, globalLogBeginner, globalLogPublisher, textFileLogObserver
from twisted.web.client import Agent, HTTPConnectionPool

from solisync.client import ApiError, Client
from solisync.postgres.embedded import EmbeddedPostgres
from solisync.postgres.migrate import load_migrations, migrate
from solisync.service import make_service
from solisync.settings import ServingSettings

ROOT = Path(__file__).resolve().parent.parent
SECRET = "canary-secret-0123456789abcdef0123456789"
PASSWORD = "canary password"
DSN_PASSWORD = "canary-dsn-password"
FAST_BCRYPT = 4
QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300")
TEST_SECONDS = 20
FIGURES = pytest.StashKey[list]()

_addresses = itertools.count(1)


# Every test: a time limit, and no failure that nobody saw.


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Give `async def` tests a time limit that leaves the reactor running."""
    function = pyfuncitem.obj
    if inspect.iscoroutinefunction(function):
        marker = pyfuncitem.get_closest_marker("limit")
        seconds = marker.args[0] if marker else TEST_SECONDS

        @functools.wraps(function)
        def bounded(*arguments, **options):
            from twisted.internet import reactor

            return defer.ensureDeferred(function(*arguments, **options)).addTimeout(seconds, reactor)

        pyfuncitem.obj = bounded


def pytest_addoption(parser):
    parser.addoption("--fire", action="store_true", help="run long forms, and what needs other programs")


def pytest_collection_modifyitems(config, items):
    """The canary test reads what all others have logged, so it comes last; without --fire, much is left out."""
    items.sort(key=lambda item: "test_canary" in item.nodeid)
    if not config.getoption("--fire"):
        items[:] = [item for item in items if not (item.get_closest_marker("long") or item.get_closest_marker("needs"))]


def pytest_collection_finish():
    freeze_heap()


def freeze_heap():
    """Exempt every object there is from garbage collection, or collecting after each test would take most of its time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _needed_programs(request):
    missing = [
        name for marker in request.node.iter_markers("needs") for name in marker.args if shutil.which(name) is None
    ]
    if missing:
        pytest.fail(f"not installed: {', '.join(missing)}", pytrace=False)


@pytest.fixture
def figure(request):
    """Write down what was measured: `figure("words and numbers")`; all of it is printed at the end of a long run."""

    def figure(text):
        print(text)
        request.config.stash.setdefault(FIGURES, []).append((request.node.name, text))

    return figure


def pytest_terminal_summary(terminalreporter, config):
    figures = config.stash.get(FIGURES, [])
    if figures and config.getoption("--fire"):
        terminalreporter.section("figures")
        for name, text in figures:
            terminalreporter.write_line(f"{name}: {text}")


@pytest.fixture(autouse=True)
def no_lost_failures():
    """Fail a test during which something was logged as an unhandled error."""
    seen = []

    def observe(event):
        failure = event.get("log_failure") or event.get("failure")  # the latter from code that still uses log.err
        if failure is not None and event["log_level"] is LogLevel.critical:
            seen.append(failure.getTraceback())

    globalLogPublisher.addObserver(observe)
    yield seen
    gc.collect()
    globalLogPublisher.removeObserver(observe)
    assert not seen, "\n".join(seen)


# Places.


@pytest.fixture(scope="session")
def logs():
    """A directory with all that the services under test have logged."""
    with tempfile.TemporaryDirectory(prefix="solisync logs ") as name:
        directory = Path(name)
        with (directory / "tests.log").open("w") as log:
            globalLogBeginner.beginLoggingTo([textFileLogObserver(log)], redirectStandardIO=False)
            yield directory


@pytest.fixture
def place():
    """A directory that also another user could enter."""
    with tempfile.TemporaryDirectory(prefix="solisync-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def reactor(twisted_greenlet, logs):
    from twisted.internet import reactor

    reactor.suggestThreadPoolSize(16)
    return reactor


@pytest.fixture
def no_deadlocks(logs):
    """Fail a test during which PostgreSQL broke a deadlock: a service says so when it runs the work again.

    Neither pg_stat_database, which learns of it later, nor the server's log, which says nothing of it, would do.
    """

    def count():
        return sum(file.read_text("utf-8", "replace").count("deadlock detected") for file in logs.glob("*.log"))

    before = count()
    yield
    assert count() == before


# PostgreSQL.


@pytest.fixture(scope="session")
def postgres(reactor):
    """One embedded server for the whole run, in a path with a space."""
    with tempfile.TemporaryDirectory(prefix="solisync data ") as name:
        Path(name).chmod(0o755)
        server = EmbeddedPostgres(reactor=reactor, data_dir=Path(name), options=QUICK)
        server.claim()
        pytest_twisted.blockon(defer.Deferred.fromCoroutine(server.start()))
        freeze_heap()
        yield server
        pytest_twisted.blockon(defer.Deferred.fromCoroutine(server.stop()))


def connect(dsn):
    """A connection of the test's own, beside the service's."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    return connection


def run_sql(dsn, sql, parameters=None):
    """Run one statement and return its rows."""
    connection = connect(dsn)
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def truncate(dsn):
    """Empty every table but the list of migrations."""
    tables = run_sql(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    names = ", ".join(name for (name,) in tables if name != "schema_migrations")
    while True:
        with contextlib.suppress(psycopg2.errors.DeadlockDetected):  # housekeeping wanted the same tables
            run_sql(dsn, f"TRUNCATE {names} CASCADE")
            return


@pytest.fixture
def empty_database(postgres):
    """The DSN of a database of the test's own, without a schema."""
    name = f"test_{next(_addresses)}"
    run_sql(postgres.dsn, f"CREATE DATABASE {name}")
    yield postgres.dsn.replace("dbname=postgres", f"dbname={name}")
    run_sql(postgres.dsn, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def shared_dsn(postgres, reactor):
    """The migrated database that most tests share."""
    run_sql(postgres.dsn, "CREATE DATABASE shared")
    dsn = postgres.dsn.replace("dbname=postgres", "dbname=shared")
    pytest_twisted.blockon(defer.Deferred.fromCoroutine(migrate(reactor, dsn, load_migrations())))
    return dsn


# The service in this process.


def environment(dsn, **more):
    """The environment of a service under test."""
    return {
        "JWT_SECRET": SECRET,
        "DATABASE_URL": f"{dsn} password={DSN_PASSWORD}",
        "SOLISYNC_LISTEN": "tcp:0:interface=127.0.0.1",
        "SOLISYNC_TRUSTED_PROXIES": "127.0.0.1",
        **more,
    }


@dataclass(frozen=True)
class Answer:
    """What came back: headers by their lower-case names."""

    status: int
    headers: dict
    content: bytes

    @property
    def json(self):
        """The body, which must be JSON and say so."""
        assert self.headers["content-type"] == "application/json"
        return msgspec.json.decode(self.content)


async def refused(call):
    """The status and message of a client's call that must fail."""
    with pytest.raises(ApiError) as caught:
        await call
    return caught.value.status, caught.value.message


@functools.cache
def pool():
    """The connections of `http`."""
    from twisted.internet import reactor

    return HTTPConnectionPool(reactor)


def http():
    """What all tests ask with."""
    from twisted.internet import reactor

    return HTTPClient(Agent(reactor, pool=pool()))


@pytest.fixture(autouse=True)
def no_old_connections():
    """Close a test's connections after it: one that the service closes for being idle would break a later test."""
    yield
    if pool.cache_info().currsize:
        pytest_twisted.blockon(pool().closeCachedConnections())


class Running:
    """A service on a port of this machine."""

    def __init__(self, service, dsn):
        self.service = service
        self.dsn = dsn
        self.port = service.address.port
        self.url = f"http://127.0.0.1:{self.port}"

    def client(self, address=None):
        """A client with an address of its own, as a trusted proxy would name it."""
        return Client(self.url, http=http(), headers={"X-Forwarded-For": address or new_address()})

    async def ask(self, method, path, headers=None, body=None, *, bearer=None, address=None):
        """One request as it is given: a bytes body is sent as it is, anything else as JSON."""
        headers = {"X-Forwarded-For": address or new_address(), **(headers or {})}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        if body is not None and not isinstance(body, bytes):
            body = msgspec.json.encode(body)
        response = await http().request(method, self.url + path, headers=headers, data=body)
        return Answer(
            response.code,
            {name.decode().lower(): values[0].decode() for name, values in response.headers.getAllRawHeaders()},
            await response.content(),
        )

    async def player(self, name="ann"):
        """A client that has just registered."""
        client = self.client()
        await client.register(name, PASSWORD)
        return client

    def sql(self, statement, parameters=None):
        """Run a statement on the service's database."""
        return run_sql(self.dsn, statement, parameters)


def new_address():
    """An IPv4 address that no client had before."""
    number = next(_addresses)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


async def start(reactor, dsn, *, settings=None, **options):
    """A running service of the test's own; stop it with `await running.service.stopService()`."""
    service = make_service(
        ServingSettings.from_environ(environment(dsn, **(settings or {}))),
        reactor,
        **{"bcrypt_cost": FAST_BCRYPT, **options},
    )
    service.privilegedStartService()
    service.startService()
    running = Running(service, dsn)
    await ready(reactor, running.client())
    return running


async def ready(reactor, client, seconds=15):
    """Wait until a service says it is ready."""
    from twisted.internet.task import deferLater

    deadline = time.monotonic() + seconds
    while True:
        try:
            return await client.ready()
        except Exception:
            if time.monotonic() > deadline:
                raise
            await deferLater(reactor, 0.05)


@pytest.fixture(scope="session")
def shared_service(reactor, shared_dsn):
    running = pytest_twisted.blockon(defer.Deferred.fromCoroutine(start(reactor, shared_dsn)))
    freeze_heap()
    yield running
    pytest_twisted.blockon(running.service.stopService())


@pytest.fixture
def server(shared_service):
    """The service that most tests share, with an empty database."""
    truncate(shared_service.dsn)
    return shared_service


# Services in processes of their own.


class Process:
    """A door of solisync in a process of its own, in a process group of its own."""

    def __init__(self, words, env, log):
        self.log_path = log
        with log.open("ab") as output:
            self.popen = subprocess.Popen(
                words, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    @property
    def pid(self):
        return self.popen.pid

    @property
    def log(self):
        """What it has written so far."""
        return self.log_path.read_text("utf-8", "replace")

    def stop(self, how=signal.SIGTERM, seconds=20):
        """Send a signal, wait for the end, return the status."""
        if self.popen.poll() is None:
            self.popen.send_signal(how)
        return self.popen.wait(seconds)


class Served(Process):
    """A service process that listens on a port of this machine."""

    def __init__(self, words, env, log, port, dsn=None):
        super().__init__(words, env, log)
        self.dsn = dsn
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    client = Running.client
    ask = Running.ask
    player = Running.player
    sql = Running.sql


def free_port():
    """A port that nobody listens on."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def launch(logs):
    """Start a command in a process of its own; what still runs at the end of the test is killed."""
    started = []

    def launch(*words, port=None, dsn=None, **env):
        log = logs / f"process-{next(_addresses)}.log"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SOLISYNC_", "PG", "JWT_"))}
        words = [str(word) for word in words]
        process = Process(words, clean | env, log) if port is None else Served(words, clean | env, log, port, dsn)
        started.append(process)
        return process

    yield launch
    for process in started:
        if process.popen.poll() is None:
            process.popen.kill()
            process.popen.wait(10)


@pytest.fixture
def serve(launch, reactor):
    """Start `tests/serve.py`, the service with fast bcrypt, on a database; resolves when it is ready."""

    async def serve(dsn, **env):
        port = free_port()
        variables = environment(dsn, SOLISYNC_LISTEN=f"tcp:{port}:interface=127.0.0.1", **env)
        process = launch(sys.executable, ROOT / "tests" / "serve.py", port=port, dsn=dsn, **variables)
        await ready(reactor, process.client())
        return process

    return serve
