"""What the tests themselves stand on: no failure and no log is lost, and children can be interrupted."""

import ast
import sys

from tests.harness.constants import ROOT
from tests.harness.processes import run

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
from tests.harness.constants import PATIENCE
from tests.harness.processes import Process, run

CHILD = (sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGINT))")

def test_children_can_be_interrupted(tmp_path):
    assert "default_int_handler" in run(*CHILD).out[0]
    process = Process(CHILD, dict(os.environ), tmp_path / "log")
    assert process.popen.wait(PATIENCE) == 0
    assert "default_int_handler" in process.log

def test_the_tests_cannot():
    os.kill(os.getpid(), signal.SIGINT)
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
IGNORING = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"


def run_tests(directory, source, *before, options=()):
    """Run tests of their own with the hooks and fixtures of all others; what pytest printed."""
    (directory / "test_inner.py").write_text(source)
    words = (sys.executable, "-m", "pytest", "-p", "pytest_twisted", "-p", "tests.conftest", "-vv", "-rA", *options)
    words += (f"--rootdir={directory}", directory / "test_inner.py")
    done = run(*before, *words, cwd=ROOT, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    return "\n".join(done.out + done.err)


def test_a_failure_lost_in_a_cycle_fails_its_own_test(tmp_path):
    """A Deferred that failed unseen, and that only the garbage collector finds, fails the test that dropped it."""
    shown = run_tests(tmp_path, LOST)
    assert "::test_that_loses_a_failure - AssertionError" in shown, shown
    assert "ValueError: lost in a cycle" in shown
    assert "3 passed, 1 error" in shown


def test_children_can_be_interrupted_where_the_tests_cannot(tmp_path):
    """With SIGINT ignored, as a script starts `make test &`, a child has the default handler all the same."""
    shown = run_tests(tmp_path, INTERRUPTIBLE, sys.executable, "-c", IGNORING)
    assert "2 passed" in shown, shown


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
        yield from call.args[{"wait_for": 1, "until": 2, "ready": 2}.get(name, len(call.args)) :]


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
