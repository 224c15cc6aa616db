"""`make run`, `make smoke` and what they install, with a copied Makefile and programs that print their arguments."""

import os
import re
import shutil
import signal
import socket
import sys

import pytest

from tests.harness.concurrency import wait_for
from tests.harness.constants import ROOT
from tests.harness.error_codes import table
from tests.harness.processes import free_port, run, terminal

PYTHON = """#!/bin/sh
if [ "$2" = pip ]; then
    echo "$@" >> "$HOME/installed"
    test -z "$PIP_FAILS" || { echo "ERROR: no network"; exit 1; }
elif [ "$1" = -c ]; then
    test -z "$NOT_THERE"
fi
"""
SOLISYNC = """#!/bin/sh
echo "$SOLISYNC_LISTEN $SOLISYNC_AUTH_LIMIT $@"
exit ${STATUS:-0}
"""
HUNG_UP = f"""#!{sys.executable}
import signal, sys
signal.signal(signal.SIGHUP, lambda *_: print("reloaded", flush=True))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("ended", flush=True)))
print("serving", *sys.argv[1:], flush=True)
while True:
    signal.pause()
"""

pytestmark = pytest.mark.long
READY = min((route.path for route in table() if route.path.endswith("/ready")), key=len)
ADMINISTERED = f"""#!{sys.executable}
import http.server, os, signal, sys
if "admins" in sys.argv:
    print(*sys.argv[1:], file=open(os.environ["HOME"] + "/said", "a"))
    print('{{"code": "K7QF-9M2D"}}')
    sys.exit()
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "{READY}" else 404)
        self.end_headers()
print("console at", os.environ.get("SOLISYNC_ADMIN_LISTEN"), "run by", os.getppid(), flush=True)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: sys.exit(print("ended", file=open(os.environ["HOME"] + "/said", "a"))))
http.server.HTTPServer(("127.0.0.1", int(os.environ["SOLISYNC_LISTEN"].split(":")[1])), Ready).serve_forever()
"""


@pytest.fixture
def make(place):
    """Run make in the copy; return its output."""
    shutil.copytree(ROOT / ".ci", place / ".ci", ignore=shutil.ignore_patterns("node_modules"))
    for name in ("Makefile", "setup.py"):
        shutil.copy(ROOT / name, place)
    programs = place / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, script in (("python", PYTHON), ("solisync", SOLISYNC)):
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)

    def make(*words, **variables):
        return run(
            "make", "--no-print-directory", f"PYTHON={sys.executable}", *words, cwd=place, HOME=place, **variables
        )

    return make


def installed(place):
    """Return the arguments of each pip install, in order."""
    file = place / "installed"
    return [line.rpartition(" ")[2] for line in file.read_text().splitlines()] if file.exists() else []


def test_make_run_installs_no_tools_for_tests(make, place):
    """`make run` installs what serving needs, once, and prints time and size; `make venv` adds the test extra."""
    port = free_port()
    first = make("run", f"PORT={port}")
    assert (first.status, installed(place)) == (0, [str(place)])
    assert "about a minute, about 190 MB, once" in first.said
    for file in ("setup.py", "Makefile"):
        (place / file).touch()
    again = make("run", f"PORT={port}")
    assert (again.status, installed(place)) == (0, [str(place)])
    assert "Installing" not in again.said
    assert make("venv").status == 0
    assert make("run", f"PORT={port}").status == 0
    assert installed(place) == [str(place), f"{place}[test]"]


def test_changed_dependency_is_installed(make, place):
    """Only the requirements in setup.py count. If pip fails, an importable installation is enough."""
    port = free_port()
    make("run", f"PORT={port}")
    setup = (place / "setup.py").read_text()
    (place / "setup.py").write_text(setup.replace("The HTTP backend", "A backend"))
    make("run", f"PORT={port}")
    assert len(installed(place)) == 1
    (place / "setup.py").write_text(setup.replace('"klein>=24.8"', '"klein>=24.9"'))
    warned = make("run", f"PORT={port}", PIP_FAILS=1)
    assert (warned.status, len(installed(place))) == (0, 2)
    assert "warning: pip failed" in warned.said
    assert "ERROR: no network" in warned.said
    failed = make("run", f"PORT={port}", PIP_FAILS=1, NOT_THERE=1)
    assert (failed.status != 0, "ERROR: no network" in failed.said) == (True, True)
    assert make("run", f"PORT={port}").status == 0
    assert len(installed(place)) == 4


def test_make_run_allows_more_logins(make):
    """`make run` prints the wider rate limit. A limit in the environment has priority."""
    port = free_port()
    done = make("run", f"PORT={port}")
    assert f"tcp:{port}:interface=127.0.0.1 100/60 " in done.out
    assert "allows 100/60 logins" in done.said
    assert f"tcp:{port}:interface=127.0.0.1 5/60 " in make("run", f"PORT={port}", SOLISYNC_AUTH_LIMIT="5/60").out


def test_make_run_hints_at_another_port_if_the_port_is_in_use(make):
    """Nothing starts before the hint."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        refused = make("run", f"PORT={other.getsockname()[1]}")
    assert refused.status != 0
    assert "make run PORT=" in refused.said
    assert "tcp:" not in refused.said


def test_make_run_pages_reloads_after_an_edit(make, launch, place):
    """`make run-pages` sends SIGHUP when a file of solisync/ was written, and ends with the service."""
    page = place / "solisync" / "static" / "style.css"
    page.parent.mkdir(parents=True)
    page.write_text("a {}")
    program = place / ".venv" / "bin" / "solisync"
    program.write_text(HUNG_UP)
    words = "make", "-C", place, f"PYTHON={sys.executable}", "run-pages", f"PORT={free_port()}"
    running = launch(*words, HOME=place)
    wait_for(lambda: "serving --workers 2" in running.log)
    page.write_text("b {}")
    wait_for(lambda: "reloaded" in running.log)
    running.stop(signal.SIGTERM)  # make passes it on
    wait_for(lambda: "ended" in running.log)
    assert running.log.count("reloaded") == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_make_run_on_a_terminal_prints_a_console_link(make, launch, place, how):
    """The command adds an admin, prints a link with a code, and removes the admin before the service ends.

    An admin left by a killed run is removed first.
    """
    program = place / ".venv" / "bin" / "solisync"
    program.write_text(ADMINISTERED)
    said = place / "said"
    with terminal() as (_, theirs):
        words = "make", "-C", place, f"PYTHON={sys.executable}", "run", f"PORT={free_port()}"
        running = launch(*words, HOME=place, stdin=theirs)
        wait_for(lambda: "/#local=K7QF-9M2D" in running.log)
        (port,) = re.findall(r"console at tcp:(\d+):interface=127.0.0.1", running.log)
        assert f"http://solisync.localhost:{port}/#local=" in running.log
        assert said.read_text().split("\n")[:-1] == [
            "admins remove local --yes",
            "admins add local",
            "admins code local --json",
        ]
        if how == signal.SIGINT:  # Ctrl-C is for all in the foreground
            os.killpg(running.pid, how)
        else:  # make passes it on
            running.popen.send_signal(how)
        wait_for(lambda: "ended" in said.read_text())
    assert said.read_text().endswith(" --json\nadmins remove local --yes\nended\n")


def test_killed_make_run_leaves_no_service(make, launch, place):
    """The service ends with its parent; the admin stays until the next run."""
    program = place / ".venv" / "bin" / "solisync"
    program.write_text(ADMINISTERED)
    with terminal() as (_, theirs):
        words = "make", "-C", place, f"PYTHON={sys.executable}", "run", f"PORT={free_port()}"
        running = launch(*words, HOME=place, stdin=theirs)
        wait_for(lambda: "/#local=K7QF-9M2D" in running.log)
        (console,) = re.findall(r"run by (\d+)", running.log)
        os.kill(int(console), signal.SIGKILL)
        wait_for(lambda: "ended" in (place / "said").read_text())
    assert (place / "said").read_text().endswith("admins code local --json\nended\n")


def test_make_run_without_a_terminal_has_no_console(make):
    """A background process must not print a code."""
    done = make("run", f"PORT={free_port()}")
    assert (done.status, "console" in done.said) == (0, False)


def test_make_smoke_uses_the_port_of_make_run(make):
    """PORT overrides it, and a failure names the port."""
    port = free_port()
    make("run", f"PORT={port}")
    assert make("smoke").out[-1].endswith(f"--smoke http://127.0.0.1:{port}")
    assert make("smoke", "PORT=7").out[-1].endswith("--smoke http://127.0.0.1:7")
    failed = make("smoke", STATUS=1)
    assert failed.status != 0
    assert f"This used port {port}. Does make run serve there?" in failed.said


def test_scripts_are_not_checked_without_npm(place):
    """`make lint` says so and continues."""
    done = run(sys.executable, ROOT / ".ci" / "javascript.py", "check", PATH=place)
    assert (done.status, done.stdout) == (0, b"npm is missing, so the JavaScript is not checked.\n")
