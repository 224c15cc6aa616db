"""Fixtures of all tests: a PostgreSQL, a service on a port, and a check for lost failures."""

import compileall
import contextlib
import functools
import gc
import inspect
import itertools
import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import pytest_twisted
from hypothesis import is_hypothesis_test, settings
from twisted.internet import defer
from twisted.logger import LogLevel, globalLogBeginner, globalLogPublisher, textFileLogObserver

from solisync.access import passwords
from solisync.embedded.server import EmbeddedPostgres
from solisync.postgres.database import Database
from solisync.postgres.migrate import load_migrations, migrate
from solisync.process.entry_point import monotonic_reactor
from solisync.storage import STATEMENTS
from tests.harness import event_streams, forking
from tests.harness.administration import administration
from tests.harness.canaries import leaked
from tests.harness.compiled_rules import compile_rules_once
from tests.harness.concurrency import then_a_new_turn, until
from tests.harness.constants import PATIENCE, ROOT
from tests.harness.entry_points import launch_service, serving
from tests.harness.files_in_memory import keep_files_in_memory
from tests.harness.http_requests import pool
from tests.harness.postgres import KEPT, QUICK, copy_cluster, run_sql, truncate
from tests.harness.processes import launching, reset_ignored_signals
from tests.harness.service import POOL_SIZE, ready, start

TEST_SECONDS = 5 * PATIENCE
CONNECTIONS = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'solisync' AND state = 'idle'
"""
WORKERS_MAX = 4  # each has its own PostgreSQL and starts its own services

_numbers = itertools.count(1)


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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """The processes of `-n auto`: one more than there are cores, because tests wait a third of their time."""
    return min(len(os.sched_getaffinity(0)) + 1, WORKERS_MAX)


def pytest_addoption(parser):
    parser.addoption("--fire", action="store_true", help="run long forms, and what needs other programs")
    parser.addoption("--times", type=int, default=1, help="run each test so many times (see tests/repeat.py)")


def pytest_generate_tests(metafunc):
    times = metafunc.config.getoption("--times")
    if times > 1 and not is_hypothesis_test(metafunc.function):  # its examples would be the same again
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(times), ids=["repeated"] * times)


def pytest_configure(config):
    compile_rules_once()
    gc.disable()  # until the tests are collected, which makes little garbage
    reset_ignored_signals()
    pytest_twisted.blockon_default = then_a_new_turn(pytest_twisted.blockon_default)
    passwords._thread = SimpleNamespace(lowered=True)  # next to busy loops a real hash would take 15 s at low priority
    if not hasattr(config, "workerinput"):  # once, despite PYTHONDONTWRITEBYTECODE: hundreds of processes read it
        compileall.compile_dir(ROOT / "solisync", quiet=2)
    # There is no deadline, because a busy machine may be slow. Without --fire, the examples are the same each time, so
    # that no test fails by chance. `costly` distinguishes the profiles by their names.
    settings.register_profile("full", deadline=None, max_examples=100)
    settings.register_profile("short", deadline=None, max_examples=20, derandomize=True)
    settings.load_profile("full" if config.getoption("--fire") else "short")
    if config.getoption("--fire"):
        forking.PROGRAMS.clear()  # every program starts as an operator would start it
    else:
        keep_files_in_memory()


def pytest_collection_modifyitems(config, items):
    """Deselect the tests that need --fire."""
    if not config.getoption("--fire"):
        config.hook.pytest_deselected(items=[item for item in items if not is_for_every_day(item)])
        items[:] = [item for item in items if is_for_every_day(item)]


def is_for_every_day(item):
    """Return whether a test runs without --fire."""
    if item.get_closest_marker("long") or item.get_closest_marker("needs"):
        return False
    return "tests/fire/" not in item.nodeid or item.get_closest_marker("short") is not None


def pytest_collection_finish():
    gc.freeze()  # exempts existing objects: each test's collection then takes 1 ms, not 130
    gc.enable()


@pytest.fixture(autouse=True)
def needed_programs(request):
    missing = [
        name for marker in request.node.iter_markers("needs") for name in marker.args if shutil.which(name) is None
    ]
    if missing:
        pytest.fail(f"not installed: {', '.join(missing)}", pytrace=False)


@pytest.fixture(scope="session")
def full(request):
    """True if the long forms of tests run: with --fire, as in `make fire`."""
    return request.config.getoption("--fire")


@pytest.fixture
def figure(request):
    """Record a measurement: `figure("words and numbers")`; a long run prints all of them at its end."""

    def figure(text):
        print(text)
        request.node.user_properties.append(("figure", text))  # reports carry it between processes

    return figure


def pytest_terminal_summary(terminalreporter, config):
    reports = [report for each in terminalreporter.stats.values() for report in each]
    last = [report for report in reports if getattr(report, "when", None) == "teardown"]
    figures = [
        (report.location[2], text) for report in last for name, text in report.user_properties if name == "figure"
    ]
    if figures and config.getoption("--fire"):
        terminalreporter.section("figures")
        for name, text in figures:
            terminalreporter.write_line(f"{name}: {text}")


@pytest.fixture(autouse=True)
def no_lost_failures():
    """Fail a test during which an unhandled error was logged."""
    seen = []

    def observe(event):
        failure = event.get("log_failure") or event.get("failure")  # code that still uses log.err sets the latter
        if failure is not None and event["log_level"] is LogLevel.critical:
            seen.append(failure.getTraceback())

    globalLogPublisher.addObserver(observe)
    yield seen
    gc.collect()  # a Deferred logs its unhandled failure when it is deleted
    gc.freeze()
    globalLogPublisher.removeObserver(observe)
    assert not seen, "\n".join(seen)


@pytest.fixture(scope="session")
def logs():
    """A directory with all logs of the services under test; the last test fails if a log contains a secret."""
    with tempfile.TemporaryDirectory(prefix="solisync logs ") as name:
        directory = Path(name)
        with (directory / "tests.log").open("w") as log:
            globalLogBeginner.beginLoggingTo([textFileLogObserver(log)], redirectStandardIO=False)
            yield directory
        assert not leaked(directory.glob("*.log"))


@pytest.fixture
def place():
    """A directory that another user can enter too."""
    # A process of a killed server may write its last file while the directory is removed.
    with tempfile.TemporaryDirectory(prefix="solisync-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def reactor(twisted_greenlet, logs):
    reactor = monotonic_reactor()
    reactor.suggestThreadPoolSize(16)
    return reactor


@pytest.fixture
def no_deadlocks(logs):
    """Fail a test during which PostgreSQL broke a deadlock, which a service logs when it repeats the work.

    Other sources don't help: pg_stat_database counts the deadlock later, and the server's log doesn't mention it.
    """

    def broken():
        lines = (line for file in logs.glob("*.log") for line in file.read_text("utf-8", "replace").splitlines())
        return sorted(line for line in lines if "deadlock detected" in line)

    before = broken()
    yield
    assert broken() == before


@pytest.fixture(scope="session")
def new_cluster(reactor):
    """The migrated cluster that initdb makes once for all tests but its own; see `initialized`."""
    with tempfile.TemporaryDirectory(prefix="solisync template ") as name:
        Path(name).chmod(0o755)
        server = EmbeddedPostgres(reactor=reactor, data_dir=Path(name), options=QUICK)
        server.claim()
        pytest_twisted.blockon(defer.Deferred.fromCoroutine(server.start()))
        pytest_twisted.blockon(defer.Deferred.fromCoroutine(migrate(reactor, server.dsn, load_migrations())))
        pytest_twisted.blockon(defer.Deferred.fromCoroutine(server.stop()))
        cluster = Path(name) / "postgresql"
        with (cluster / "postgresql.conf").open("a") as settings:
            settings.write("fsync = off\n")  # the tests kill processes, never the machine
        yield cluster


@pytest.fixture(scope="session")
def initialized(new_cluster):
    """Copy the new cluster into a data directory, in a tenth of initdb's time; return the directory."""

    def initialized(data_dir):
        data_dir.mkdir(exist_ok=True)
        copy_cluster(new_cluster, data_dir / "postgresql")
        return data_dir

    return initialized


@pytest.fixture(scope="session")
def postgres(reactor, initialized):
    """One embedded server for the whole run, in a path with a space."""
    with tempfile.TemporaryDirectory(prefix="solisync data ") as name:
        Path(name).chmod(0o755)
        server = EmbeddedPostgres(reactor=reactor, data_dir=initialized(Path(name)), options=QUICK)
        server.claim()
        pytest_twisted.blockon(defer.Deferred.fromCoroutine(server.start()))
        yield server
        pytest_twisted.blockon(defer.Deferred.fromCoroutine(server.stop()))
        assert not leaked(Path(name).glob("*.log"))


@contextlib.contextmanager
def own_database(postgres, template):
    """Create a database for one test; yield its DSN."""
    name = f"test_{next(_numbers)}"
    run_sql(postgres.dsn, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield postgres.dsn.replace("dbname=postgres", f"dbname={name}")
    run_sql(postgres.dsn, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_database(postgres):
    """The DSN of a new database without a schema."""
    with own_database(postgres, "template1") as dsn:
        yield dsn


@pytest.fixture
def migrated_database(postgres):
    """The DSN of a new database with the schema, in a fifth of the time of migrating."""
    with own_database(postgres, "postgres") as dsn:
        yield dsn


@pytest.fixture(scope="session")
def shared_dsn(postgres):
    """The migrated database that most tests share."""
    run_sql(postgres.dsn, "CREATE DATABASE shared TEMPLATE postgres")
    dsn = postgres.dsn.replace("dbname=postgres", "dbname=shared")
    KEPT[dsn] = None
    return dsn


@pytest.fixture
def open_database(reactor, shared_dsn):
    """Open a pool on the shared database, another one or none; it is closed after the test."""
    opened = []

    def open_database(dsn=shared_dsn, *, size=1, statements=STATEMENTS, **options):
        database = Database(reactor=reactor, size=size, statements=statements, **options)
        if dsn is not None:
            database.open(dsn)
        opened.append(database)
        return database

    yield open_database
    for database in opened:
        pytest_twisted.blockon(defer.Deferred.fromCoroutine(database.close(1)))


@pytest.fixture(autouse=True)
def no_old_connections():
    """Close a test's connections after it: if the service closed an idle one, a later test would break."""
    yield
    if pool.cache_info().currsize:
        pytest_twisted.blockon(pool(True).closeCachedConnections())


@pytest.fixture(scope="session")
def shared_service(reactor, shared_dsn):
    settings = {"SOLISYNC_ADMIN_LISTEN": "tcp:0:interface=127.0.0.1"}
    running = pytest_twisted.blockon(defer.Deferred.fromCoroutine(start(reactor, shared_dsn, settings=settings)))
    whole = until(reactor, lambda: running.at_rest)  # otherwise the service would open files that a test counts
    pytest_twisted.blockon(defer.Deferred.fromCoroutine(whole))
    running.keeps_connections = True
    yield running
    pytest_twisted.blockon(running.service.stopService())


@pytest.fixture
def server(shared_service):
    """The service that most tests share, with an empty database."""
    truncate(shared_service.dsn)
    shared_service.forget_lists()
    return shared_service


@pytest.fixture
def administrate(reactor, shared_dsn):
    """Run a subcommand in this process, on the shared database unless the environment says otherwise."""
    return administration(reactor, shared_dsn)


@pytest.fixture(scope="session")
def shared_nodes(shared_dsn, reactor, logs):
    connected = len(run_sql(shared_dsn, CONNECTIONS))
    with serving(reactor, logs, shared_dsn) as one, serving(reactor, logs, shared_dsn) as other:
        running = [one, other]
        # A connection that is still being set up may deadlock with the emptying of all tables.
        whole = until(reactor, lambda: len(run_sql(shared_dsn, CONNECTIONS)) >= connected + len(running) * POOL_SIZE)
        pytest_twisted.blockon(defer.Deferred.fromCoroutine(whole))
        yield running


@pytest.fixture
def nodes(shared_nodes):
    """Two services in separate processes on the emptied database that most tests share."""
    truncate(shared_nodes[0].dsn)
    return shared_nodes


@pytest.fixture
def launch(logs):
    """Start a command in a separate process; if it still runs at the end of the test, it is killed."""
    with launching(logs) as launch:
        yield launch


@pytest.fixture
def serve(launch, reactor):
    """Start `tests/harness/serve.py`, the service with fast bcrypt, on a database; return once it is ready."""

    async def serve(dsn, **env):
        process = launch_service(launch, dsn, **env)
        await ready(reactor, process.client())
        return process

    return serve


@pytest.fixture
def listen(reactor):
    """Open a stream for a player's client; all streams are closed at the end of the test."""
    opened = []

    async def listen(server, client, **options):
        token = client if isinstance(client, str) else client.tokens.access_token
        stream = await event_streams.connect(reactor, server.port, token, **options)
        opened.append(stream)
        return stream

    yield listen
    for stream in opened:
        stream.transport.abortConnection()
