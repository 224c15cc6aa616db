"""Rules that the tests rely on: no failure and no log is lost, and all waits share one bound."""

import ast
import sys

import pytest

from tests.harness.constants import ROOT
from tests.harness.entry_points import SOLISYNC, anew
from tests.harness.processes import run

TIMED = {"deploy", "fire", "ha", "pages"}  # folders whose tests run by themselves, and may measure time

PATCHED_CONSTANTS = 25

INNER = """
import os
from twisted.internet.defer import Deferred
from tests.harness.constants import SECRET

def test_that_logs_a_secret(logs, figure):
    worker = os.environ["PYTEST_XDIST_WORKER"]
    figure(f"figure of {worker}")
    (logs / f"{worker}.log").write_text(f"key is {SECRET}")

def test_that_loses_a_failure():
    dropped = Deferred()
    dropped.itself = dropped
    dropped.errback(ValueError("lost in a cycle"))

def test_after(): pass
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return what pytest prints of INNER, run by each of two processes with the hooks and fixtures of all tests."""
    directory = tmp_path_factory.mktemp("inner")
    (directory / "test_inner.py").write_text(INNER)
    words = (sys.executable, "-m", "pytest", "-vv", "-rA", "-n2", "--dist=each", "--fire", f"--rootdir={directory}")
    words += tuple(f"-p{plugin}" for plugin in ("pytest_twisted", "xdist.plugin", "tests.conftest"))
    done = run(*words, directory / "test_inner.py", cwd=ROOT, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    return "\n".join(done.out + done.err)


@pytest.mark.long
def test_failure_lost_in_a_cycle_fails_its_own_test(shown):
    """Only the garbage collector finds a failed Deferred in a cycle of references."""
    assert "::test_that_loses_a_failure - AssertionError" in shown, shown
    assert "ValueError: lost in a cycle" in shown
    assert "6 passed, 4 errors" in shown


@pytest.mark.long
def test_logs_and_figures_of_both_processes_are_read(shown):
    """A secret in the logs of either process fails its last test, and the figures of both are printed."""
    for worker in ("gw0", "gw1"):
        assert f"{{'{worker}.log': ['canary-secret-" in shown, shown
        assert f"figure of {worker}" in shown.partition("= figures =")[2]


def waits(tree):
    """Return the bounds of the waits in a module: a `timeout`, or the second argument of a function of the harness."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        yield from (word.value for word in call.keywords if word.arg in ("timeout", "patience"))
        yield from call.args[{"wait": 0, "wait_for": 1, "until": 2, "ready": 2}.get(name, len(call.args)) :]


def test_every_wait_uses_the_shared_bound():
    """Under other load, any smaller number of seconds would be too short one day."""
    own = [
        f"{path.name}:{bound.lineno}"
        for path in (ROOT / "tests").rglob("*.py")
        if path.relative_to(ROOT).parts[1] not in TIMED
        for bound in waits(ast.parse(path.read_text("utf-8")))
        if isinstance(bound, ast.Constant) and isinstance(bound.value, int | float) and bound.value >= 1
    ]
    assert own == []


def test_few_tests_patch_a_constant():
    """A value that several tests shorten is an argument, which shows in each test."""
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


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--version",), marks=pytest.mark.long),
        pytest.param(("nonsense",), marks=pytest.mark.long),
        ("users", "list", "--limit=x"),
        ("--migrate",),
    ],
)
def test_forked_command_behaves_like_a_started_one(words):
    """Status, standard output and standard error are the same."""
    variables = {"DATABASE_URL": "host=127.0.0.1 port=1"}
    assert run(*SOLISYNC, *words, **variables) == run(*anew(SOLISYNC), *words, **variables)
