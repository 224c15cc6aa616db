"""Processes of the tests: commands that run to their end, services in the background, and their child processes."""

import contextlib
import itertools
import os
import signal
import socket
import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from tests.harness.concurrency import wait_for
from tests.harness.constants import PATIENCE
from tests.harness.forking import start_process
from tests.harness.service import Reachable

PROC = Path("/proc")
STATE, PARENT, USER_TICKS, SYSTEM_TICKS, NICE = 0, 1, 11, 12, 16  # the indexes of `stat_fields`, see proc_pid_stat(5)

_numbers = itertools.count(1)
_reserved = deque(maxlen=50)  # more ports than one test needs


def reset_ignored_signals():
    """Let children of this process handle SIGINT and SIGHUP as usual, even if it was started with them ignored.

    A shell without job control starts `make test &` with SIGINT ignored, and `nohup make test` ignores SIGHUP. An
    ignored signal stays ignored after exec: every test of Ctrl-C or of a closed terminal would wait for a process that
    doesn't react. Exec resets a signal that has a handler. So this process installs handlers that do nothing, and still
    ignores the signals. (`restore_signals` of subprocess changes neither signal, and a `preexec_fn` may hang if other
    threads run.)
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)


def clean_environment(**variables):
    """This process's environment without variables that configure solisync, and with `variables`."""
    foreign = ("SOLISYNC_", "PG", "JWT_", "DATABASE_URL")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return inherited | {name: str(value) for name, value in variables.items()}


@dataclass(frozen=True)
class Done:
    """The status and the output of a command."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self):
        """The lines of standard output."""
        return self.stdout.decode("utf-8", "replace").splitlines()

    @property
    def err(self):
        """The lines of standard error."""
        return self.stderr.decode("utf-8", "replace").splitlines()

    @property
    def said(self):
        """The whole output, as one text."""
        return "\n".join(self.out + self.err)


def run(*words, stdin=b"", cwd=None, **variables):
    """Run a command to its end."""
    with contextlib.ExitStack() as stack:
        given, out, err = files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        given.write(stdin)
        given.seek(0)
        process = start_process(words, clean_environment(**variables), *files, cwd=cwd)
        try:
            status = process.wait(PATIENCE)
        finally:
            process.kill()
        for file in (out, err):
            file.seek(0)
        return Done(status, out.read(), err.read())


class Process:
    """A command in a separate process and process group, which logs to a file."""

    def __init__(self, words, env, log, stdin=None):
        self.log_path = log
        with log.open("ab") as output, open(os.devnull, "rb") as nothing:
            self.popen = start_process(words, env, stdin or nothing, output, output)

    @property
    def pid(self):
        return self.popen.pid

    @property
    def log(self):
        """The output so far."""
        return self.log_path.read_text("utf-8", "replace")

    def stop(self, how=signal.SIGTERM, seconds=PATIENCE):
        """Send a signal, wait for the end, and return the status."""
        if self.popen.poll() is None:
            self.popen.send_signal(how)
        return self.popen.wait(seconds)


class ServiceProcess(Reachable, Process):
    """A service in a separate process, on a local port."""

    def __init__(self, words, env, log, port, dsn=None, stdin=None):
        Process.__init__(self, words, env, log, stdin)
        Reachable.__init__(self, port, dsn)


@contextlib.contextmanager
def launching(logs):
    """Start commands in separate processes that log into a directory; at the end, kill those that still run.

    Their workers are killed too: they would end by themselves, but may need the test's files until then.
    """
    started = []

    def launch(*words, port=None, dsn=None, stdin=None, **env):
        given = [str(word) for word in words], clean_environment(**env), logs / f"process-{next(_numbers)}.log"
        process = Process(*given, stdin) if port is None else ServiceProcess(*given, port, dsn, stdin)
        started.append(process)
        return process

    try:
        yield launch
    finally:
        for process in started:
            if process.popen.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.popen.wait(PATIENCE)


@contextlib.contextmanager
def terminal():
    """A terminal, as two files: the user's end, and the end that is a program's standard input."""
    with contextlib.ExitStack() as stack:
        yield tuple(stack.enter_context(open(end, "r+b", buffering=0)) for end in os.openpty())


def free_port():
    """A port on which no process listens, and which no other process receives.

    The port stays bound to a socket that doesn't listen. So a process that asks for any port or connects somewhere gets
    another one. A server that sets SO_REUSEADDR, as all do, can still listen on it.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    _reserved.append(reserved)
    return reserved.getsockname()[1]


def listens(port):
    """Return whether a process listens on a local port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until_listening(process, port):
    """Wait until a started program listens on a port."""
    wait_for(lambda: process.popen.poll() is not None or listens(port))
    assert process.popen.poll() is None, process.log


def stat_fields(directory):
    """The fields of /proc/…/stat after the name, which may contain spaces; raises OSError if the process is gone."""
    return (directory / "stat").read_text("utf-8", "replace").rpartition(") ")[2].split()


def alive(pid):
    """Return whether a process runs; a zombie doesn't."""
    try:
        return stat_fields(PROC / str(pid))[STATE] != "Z"
    except OSError:
        return False


def cpu_ticks(pid):
    """The processor time that a process has used, in clock ticks."""
    fields = stat_fields(PROC / str(pid))
    return int(fields[USER_TICKS]) + int(fields[SYSTEM_TICKS])


def children(pid):
    """The process ids of a process's children that its first thread has started."""
    return [int(child) for child in (PROC / str(pid) / "task" / str(pid) / "children").read_text().split()]


def command_line(pid, file="cmdline"):
    """The words that started a process, each with a zero byte after it; empty if the process is gone."""
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / file).read_bytes()
    return b""


def descriptors(pid):
    """The targets of a process's descriptors, such as "pipe:[123]", except those closed during the search."""
    found = set()
    for link in (PROC / str(pid) / "fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(link))
    return found


def kill(pid, how=signal.SIGKILL):
    """Send a signal, unless the process has ended."""
    if alive(pid):
        os.kill(pid, how)


def processes_in(directory):
    """The processes that work in `directory` or below, such as an embedded server's: {pid: (command line, uid)}."""
    found = {}
    for entry in PROC.iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd").startswith(str(directory)):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                found[int(entry.name)] = words, entry.stat().st_uid
        except OSError:
            continue
    return found


def postmaster(data_dir):
    """The process id of the server in a data directory; None until the server has written it."""
    with contextlib.suppress(FileNotFoundError, IndexError):
        return int((data_dir / "postgresql" / "postmaster.pid").read_text("utf-8").split()[0])
    return None


def workers(process):
    """The process ids of a supervisor's workers; forked ones are recognised by their names."""
    return {pid for pid in children(process.pid) if b"worker" in command_line(pid) + command_line(pid, "comm")}


def wait_until_ready(process, count):
    """Wait until this many workers have become ready in total."""
    wait_for(lambda: process.log.count(" is ready") >= count)


def replaced(process, times=1):
    """Wait until all workers have been replaced this many times."""
    wait_for(lambda: process.log.count("replaced all workers") >= times)
