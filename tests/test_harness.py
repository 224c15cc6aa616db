"""What the tests themselves stand on: no failure and no log is lost, and children can be interrupted."""

import ast
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from twisted.internet.threads import deferToThread

from solisync.supervisor import LIFELINE, SOCKET
from tests.harness import surroundings
from tests.harness.concurrency import wait_for
from tests.harness.constants import PATIENCE, ROOT
from tests.harness.entry_points import SOLISYNC, anew
from tests.harness.forking import fork
from tests.harness.processes import alive, clean_environment, descriptors, run, wait_until_ready, workers

EVERY_DAY = (
    ".",
    "access",
    "checking",
    "commands",
    "harness",
    "klondike",
    "postgres",
    "process",
    "rules",
    "web",
    "wire",
)

PATCHED_CONSTANTS = 25

LOST = """
from twisted.internet.defer import Deferred

def test_before(): pass

def test_that_loses_a_failure():
    dropped = Deferred()
    dropped.itself = dropped
    dropped.errback(ValueError("lost in a cycle"))

def test_after(): pass
"""

INTERRUPTIBLE = """
import os, signal, subprocess, sys
import pytest
from tests.harness.constants import PATIENCE
from tests.harness.processes import Process, run

CHILD = (sys.executable, "-c", "import signal; print(*map(signal.getsignal, (signal.SIGINT, signal.SIGHUP)))")

def takes_both(shown):
    return "default_int_handler" in shown and shown.endswith(" 0")  # 0 is SIG_DFL

def test_children_can_be_interrupted(tmp_path):
    assert takes_both(run(*CHILD).out[0])
    process = Process(CHILD, dict(os.environ), tmp_path / "log")
    assert process.popen.wait(PATIENCE) == 0
    assert takes_both(process.log.strip())

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_the_tests_cannot(number):
    os.kill(os.getpid(), number)
"""
STALE = """
import os, socket
import pytest
from twisted.internet import reactor
from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory
from twisted.internet.task import deferLater

class Reader(FileDescriptor):
    def __init__(self, descriptor, ended):
        super().__init__(reactor)
        self.fileno, self.connectionLost = lambda: descriptor, ended
        self.startReading()

async def test_two_pipes_end_at_once():
    over = Deferred()
    pipes = [os.pipe() for _ in range(2)]
    def close(_):
        for reader, (output, _) in zip(readers, pipes):
            reader.stopReading()
            os.close(output)
        over.callback(None)
    readers = [Reader(output, close) for output, _ in pipes]
    for _, theirs in pipes:
        os.close(theirs)
    await over

@pytest.fixture(scope="module")
def ports():
    return [reactor.listenTCP(0, Factory(), interface="127.0.0.1") for _ in range(4)]

async def test_the_next_ports_stay_open(ports):
    await deferLater(reactor, 0.01)
    for port in ports:
        with socket.create_connection(("127.0.0.1", port.getHost().port)):
            await port.stopListening()
"""
LEAKING = """
import os
import pytest
from tests.harness.constants import SECRET

@pytest.mark.parametrize("number", range(4))
def test_that_logs_a_secret(logs, figure, number):
    worker = os.environ["PYTEST_XDIST_WORKER"]
    figure(f"figure {number} of {worker}")
    (logs / f"{worker}.log").write_text(f"key is {SECRET}")
"""
IGNORING = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""


def run_tests(directory, source, *before, options=()):
    """Run tests of their own with the hooks and fixtures of all others; what pytest printed."""
    (directory / "test_inner.py").write_text(source)
    words = (sys.executable, "-m", "pytest", "-p", "pytest_twisted", "-p", "tests.conftest", "-vv", "-rA", *options)
    words += (f"--rootdir={directory}", directory / "test_inner.py")
    done = run(*before, *words, cwd=ROOT, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    return "\n".join(done.out + done.err)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What pytest prints of both, with SIGINT and SIGHUP ignored, as by `nohup make test &` in a script."""
    source = LOST + INTERRUPTIBLE + STALE
    return run_tests(tmp_path_factory.mktemp("inner"), source, sys.executable, "-c", IGNORING)


def test_a_failure_lost_in_a_cycle_fails_its_own_test(shown):
    """A Deferred that failed unseen, and that only the garbage collector finds, fails the test that dropped it."""
    assert "::test_that_loses_a_failure - AssertionError" in shown, shown
    assert "ValueError: lost in a cycle" in shown
    assert "8 passed, 1 error" in shown


def test_children_can_be_interrupted_where_the_tests_cannot(shown):
    """With SIGINT and SIGHUP ignored, a child takes both as usual all the same."""
    for name in ("test_children_can_be_interrupted", "test_the_tests_cannot[1]", "test_the_tests_cannot[2]"):
        assert f"::{name} PASSED" in shown, shown


def test_an_event_for_a_closed_pipe_harms_no_other_test(shown):
    """Of two pipes that end in the same turn of the reactor, the first closes both; the next test opens ports."""
    assert "::test_the_next_ports_stay_open PASSED" in shown, shown


def test_what_two_processes_log_and_measure_is_seen(tmp_path):
    """With `-n 2`, a secret in the logs of either process fails its last test, and the figures of both are printed."""
    shown = run_tests(tmp_path, LEAKING, options=("-p", "xdist.plugin", "-n2", "--fire"))
    assert "4 passed, 2 errors" in shown, shown
    for worker in ("gw0", "gw1"):
        assert f"{{'{worker}.log': ['canary-secret-" in shown
    assert {f"figure {number} of" in shown.partition("= figures =")[2] for number in range(4)} == {True}


def waits(tree):
    """The bounds of the waits in a module: a `timeout`, or the second argument of a function of the harness."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        yield from (word.value for word in call.keywords if word.arg in ("timeout", "patience"))
        yield from call.args[{"wait": 0, "wait_for": 1, "until": 2, "ready": 2}.get(name, len(call.args)) :]


def test_every_wait_has_the_one_bound():
    """No wait has a number of seconds of its own: beside other work, each of them would be too few one day."""
    modules = [path for name in EVERY_DAY for path in (ROOT / "tests" / name).glob("*.py")]
    own = [
        f"{path.name}:{bound.lineno}"
        for path in modules
        for bound in waits(ast.parse(path.read_text("utf-8")))
        if isinstance(bound, ast.Constant) and isinstance(bound.value, int | float) and bound.value >= 1
    ]
    assert own == []


def test_few_tests_patch_a_constant():
    """What several tests shorten is an argument, which says in the test what it is about."""
    patched = [
        f"{path.name}:{call.lineno}"
        for path in (ROOT / "tests").rglob("*.py")
        if "setattr" in (source := path.read_text("utf-8"))
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "setattr"
        for name in (getattr(argument, "value", "") for argument in call.args[:2])
        if str(name).rpartition(".")[2].strip("_").isupper()
    ]
    assert len(patched) <= PATCHED_CONSTANTS, patched


def test_a_forked_program_finds_what_a_started_one_does(tmp_path):
    """Arguments, environment, directory, session, signals, descriptors and input; and the reactor is yet to be made."""
    environment = clean_environment(SOLISYNC_LISTEN="tcp:1", ZOE="zoë")
    found = []
    for program in ("forked", "started"):
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(b"some input")
            given.seek(0)
            if program == "forked":
                words = (surroundings.__file__, "a", "b")
                process = fork("tests.harness.surroundings:main", words, environment, given, out, err, cwd=tmp_path)
            else:
                words = (sys.executable, surroundings.__file__, "a", "b")
                process = subprocess.Popen(
                    words, env=environment, stdin=given, stdout=out, stderr=err, cwd=tmp_path, start_new_session=True
                )
            assert process.wait(PATIENCE) == 3
            out.seek(0)
            err.seek(0)
            found.append((json.load(out), err.read()))
    assert found[0] == found[1]
    assert found[0][0]["environment"]["ZOE"] == "zoë"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--version",), marks=pytest.mark.long),
        pytest.param(("nonsense",), marks=pytest.mark.long),
        ("users", "list", "--limit=x"),
        ("--migrate",),
    ],
)
def test_a_forked_command_ends_as_a_started_one(words):
    """With the same status and the same words, on standard output and on standard error."""
    variables = {"DATABASE_URL": "host=127.0.0.1 port=1"}
    assert run(*SOLISYNC, *words, **variables) == run(*anew(SOLISYNC), *words, **variables)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_forked_process_that_a_signal_ends_says_so(number):
    """As of a Popen, minus the number is the status; there is none while it runs."""
    with tempfile.TemporaryFile() as file:
        process = fork("signal:pause", ["pause"], clean_environment(), file, file, file)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.send_signal(number)
    assert process.wait() == process.poll() == -number
    assert not alive(process.pid)
    process.kill()


def sockets(pid):
    """The sockets and pipes that a process has."""
    return {name for name in descriptors(pid) if name.startswith(("socket:", "pipe:"))}


async def test_workers_of_a_forked_service_are_as_started_ones(serve, shared_dsn, full):
    """They are its children, in its process group; they share two descriptors with it alone, and end when it does."""
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    await deferToThread(wait_until_ready, process, 2)
    found = workers(process)
    assert len(found) == 2
    for pid in found:
        assert (b"fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()) is not full
        assert os.getpgid(pid) == process.pid
        shared = {os.readlink(f"/proc/{pid}/fd/{number}") for number in (LIFELINE, SOCKET)}
        # a pipe of the start of the other worker may be open for a moment
        await deferToThread(wait_for, lambda: sockets(pid) & sockets(process.pid) == shared)  # noqa: B023
    process.stop(signal.SIGKILL)
    await deferToThread(wait_for, lambda: not any(map(alive, found)))


def test_a_program_that_cannot_begin_fails_its_test(tmp_path):
    """Such as one whose directory is missing: its status is not taken for a process id."""
    with tempfile.TemporaryFile() as file, pytest.raises(AssertionError, match="ended with 1 before it began"):
        fork("signal:pause", ["pause"], clean_environment(), file, file, file, cwd=tmp_path / "missing")
