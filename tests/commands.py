"""The doors of solisync as an operator meets them: commands in processes of their own, and what they leave behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.conftest import ROOT, SECRET, free_port

BIN = Path(sys.executable).parent
SOLISYNC = (BIN / "solisync",)
TWISTD = (BIN / "twistd", "-n", "--pidfile=", "solisync")
TAC = (BIN / "twistd", "--pidfile=", "-ny", ROOT / "solisync.tac")
MODULE = (sys.executable, "-m", "solisync.commands.main")


def clean_environment(**variables):
    """This process' environment without what would configure solisync, and with `variables`."""
    foreign = ("SOLISYNC_", "PG", "JWT_", "DATABASE_URL")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return inherited | {name: str(value) for name, value in variables.items()}


def run(*words, stdin=b"", cwd=None, **variables):
    """Run a command to its end; `status`, `out` and `err` of it, the latter as lists of lines."""
    done = subprocess.run(
        [os.fspath(word) for word in words],
        input=stdin,
        capture_output=True,
        env=clean_environment(**variables),
        cwd=cwd,
        timeout=30,
        start_new_session=True,
    )
    done.status = done.returncode
    done.out, done.err = (text.decode("utf-8", "replace").splitlines() for text in (done.stdout, done.stderr))
    return done


def start(launch, *words, data_dir=None, dsn=None, endpoint=None, **variables):
    """Start a service at a door, on a port of its own unless it gets an `endpoint`."""
    port = free_port()
    given = {"JWT_SECRET": SECRET, "SOLISYNC_TRUSTED_PROXIES": "127.0.0.1"}
    given["SOLISYNC_LISTEN"] = endpoint or f"tcp:{port}:interface=127.0.0.1"
    if data_dir is not None:
        given["SOLISYNC_DATA_DIR"] = str(data_dir)
    if dsn is not None:
        given["DATABASE_URL"] = dsn
    return launch(*words, port=port, dsn=dsn, **given | variables)


def processes_in(directory):
    """The processes that work in `directory` or below, as {pid: (command line, uid)}: an embedded server's."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd").startswith(str(directory)):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                found[int(entry.name)] = words, entry.stat().st_uid
        except OSError:
            continue
    return found


def postmaster(data_dir):
    """The process id of the server in a data directory; None while it is yet to write that."""
    with suppress(FileNotFoundError, IndexError):
        return int((data_dir / "postgresql" / "postmaster.pid").read_text("utf-8").split()[0])
    return None


def alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text("utf-8").rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds=10.0):
    """Wait for something that sends no event, such as the end of a process that is not our child."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return result


def kill(pid, how=signal.SIGKILL):
    """Send a signal, unless the process has gone."""
    if alive(pid):
        os.kill(pid, how)
