"""Processes of the tests: commands that run to their end, services that are left running, and what runs below them."""

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
STATE, PARENT, USER_TICKS, SYSTEM_TICKS, NICE = 0, 1, 11, 12, 16  # what `stat_fields` are, see proc_pid_stat(5)

_numbers = itertools.count(1)
_reserved = deque(maxlen=50)  # more ports than one test needs


def reset_ignored_signals():
    """Let children of this process take SIGINT and SIGHUP as usual, also when it was started with them ignored.

    A shell without job control starts `make test &` without SIGINT, and `nohup make test` is without SIGHUP. An ignored
    signal outlives exec: every test of Ctrl-C or of a closed terminal would wait for a process that doesn't notice. A
    signal with a handler is reset by exec instead, so this process gets one that does nothing, and goes on ignoring the
    signal. (`restore_signals` of subprocess leaves both alone, and a `preexec_fn` may hang where other threads run.)
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)


def clean_environment(**variables):
    """This process' environment without what would configure solisync, and with `variables`."""
    foreign = ("SOLISYNC_", "PG", "JWT_", "DATABASE_URL")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return inherited | {name: str(value) for name, value in variables.items()}


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it wrote."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self):
        """The lines of its standard output."""
        return self.stdout.decode("utf-8", "replace").splitlines()

    @property
    def err(self):
        """The lines of its standard error."""
        return self.stderr.decode("utf-8", "replace").splitlines()

    @property
    def said(self):
        """All of it, as one text."""
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
    """A command in a process of its own, in a process group of its own, which logs to a file."""

    def __init__(self, words, env, log, stdin=None):
        self.log_path = log
        with log.open("ab") as output, open(os.devnull, "rb") as nothing:
            self.popen = start_process(words, env, stdin or nothing, output, output)

    @property
    def pid(self):
        return self.popen.pid

    @property
    def log(self):
        """What it has written so far."""
        return self.log_path.read_text("utf-8", "replace")

    def stop(self, how=signal.SIGTERM, seconds=PATIENCE):
        """Send a signal, wait for the end, return the status."""
        if self.popen.poll() is None:
            self.popen.send_signal(how)
        return self.popen.wait(seconds)


class ServiceProcess(Reachable, Process):
    """A service in a process of its own, on a port of this machine."""

    def __init__(self, words, env, log, port, dsn=None, stdin=None):
        Process.__init__(self, words, env, log, stdin)
        Reachable.__init__(self, port, dsn)


@contextlib.contextmanager
def launching(logs):
    """Start commands in processes of their own that log into a directory; what still runs at the end is killed.

    With its workers, which would go by themselves, but may need the test's files for that.
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
    """A terminal, as two files: what the person at it has, and what is the standard input of a program on it."""
    with contextlib.ExitStack() as stack:
        yield tuple(stack.enter_context(open(end, "r+b", buffering=0)) for end in os.openpty())


def free_port():
    """A port that nobody listens on, and that nobody else is given.

    It stays bound to a socket that does not listen: those who ask for any port or connect to somewhere get another one,
    while a server that sets SO_REUSEADDR, as all do, can listen there.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    _reserved.append(reserved)
    return reserved.getsockname()[1]


def listens(port):
    """Return whether a process listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until_listening(process, port):
    """Wait until a program that was started listens on a port."""
    wait_for(lambda: process.popen.poll() is not None or listens(port))
    assert process.popen.poll() is None, process.log


def stat_fields(directory):
    """What /proc tells of a process or thread after its name, which may contain spaces; OSError if it is gone."""
    return (directory / "stat").read_text("utf-8", "replace").rpartition(") ")[2].split()


def alive(pid):
    """Return whether a process runs; a zombie does not."""
    try:
        return stat_fields(PROC / str(pid))[STATE] != "Z"
    except OSError:
        return False


def cpu_ticks(pid):
    """The processor time that a process has used, in clock ticks."""
    fields = stat_fields(PROC / str(pid))
    return int(fields[USER_TICKS]) + int(fields[SYSTEM_TICKS])


def children(pid):
    """The process ids of the children of a process, as far as its first thread has started them."""
    return [int(child) for child in (PROC / str(pid) / "task" / str(pid) / "children").read_text().split()]


def command_line(pid, file="cmdline"):
    """The words by which a process was started, each with a zero byte after it; empty if it is gone."""
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / file).read_bytes()
    return b""


def descriptors(pid):
    """What the descriptors of a process refer to, such as "pipe:[123]", less those that are closed meanwhile."""
    found = set()
    for link in (PROC / str(pid) / "fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(link))
    return found


def kill(pid, how=signal.SIGKILL):
    """Send a signal, unless the process has gone."""
    if alive(pid):
        os.kill(pid, how)


def processes_in(directory):
    """The processes that work in `directory` or below, as {pid: (command line, uid)}: an embedded server's."""
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
    """The process id of the server in a data directory; None while it is yet to write that."""
    with contextlib.suppress(FileNotFoundError, IndexError):
        return int((data_dir / "postgresql" / "postmaster.pid").read_text("utf-8").split()[0])
    return None


def workers(process):
    """The process ids of a supervisor's workers; those of forked ones are known by their names."""
    return {pid for pid in children(process.pid) if b"worker" in command_line(pid) + command_line(pid, "comm")}


def wait_until_ready(process, count):
    """Wait for so many workers to have got ready in all."""
    wait_for(lambda: process.log.count(" is ready") >= count)


def replaced(process, times=1):
    """Wait until all workers have been replaced so many times."""
    wait_for(lambda: process.log.count("replaced all workers") >= times)
