"""Running this repository's programs in forked processes, which saves each of them half a second of importing."""

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys

from tests.harness.constants import BIN, ROOT

READ_AT_START = ("PYTHON", "PROMETHEUS_")  # variables that the interpreter or a module reads before a program begins
PATH = "PYTHONPATH"  # one of these; each of its values has a fork server
PROGRAMS = {  # the forked programs: the words that start each, and its function
    (str(BIN / "solisync"),): "solisync.commands.main:main",
    (str(BIN / "solisync-reset-password"),): "solisync.commands.reset_password:main",
    (str(BIN / "twistd"),): "twisted.scripts.twistd:run",
    (sys.executable, str(ROOT / "tests" / "harness" / "serve.py")): "tests.harness.serve:main",
    (sys.executable, str(ROOT / "tests" / "harness" / "begin.py")): "tests.harness.begin:main",
}


def start_process(words, env, stdin, stdout, stderr, *, cwd=None):
    """Start a command in a separate session, forked if possible; return a Popen or an object like one."""
    words = [os.fspath(word) for word in words]
    own = [name for name, value in env.items() if os.environ.get(name) != value]
    if not any(name.startswith(READ_AT_START) and name != PATH for name in own):
        for count in (1, 2):
            if (program := PROGRAMS.get(tuple(words[:count]))) is not None:
                return fork(program, words[count - 1 :], env, stdin, stdout, stderr, cwd=cwd)
    return subprocess.Popen(words, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True)


def fork(program, words, env, *files, cwd=None):
    """Make the fork server start a program."""
    directory = None if cwd is None else os.fspath(cwd)
    request = {"program": program, "words": words, "environment": env, "directory": directory}
    reports, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        descriptors = [theirs.fileno(), *(file.fileno() for file in files)]
        socket.send_fds(fork_server(env.get(PATH)), [json.dumps(request).encode()], descriptors)
    return Forked(words, reports)


@functools.cache
def fork_server(path):
    """The socket of the fork server with this PYTHONPATH; it starts on the first call and ends with this process."""
    requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = (sys.executable, "-m", "tests.harness.fork_server")
    with theirs:
        env = os.environ if path is None else os.environ | {PATH: os.fspath(path)}
        server = subprocess.Popen(
            words, cwd=ROOT, env=env, stdin=theirs, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def end():
        requests.close()
        server.wait()

    atexit.register(end)
    return requests


class Forked:
    """A process of the fork server, with the interface of `subprocess.Popen`."""

    returncode = None

    def __init__(self, words, reports):
        self.args = words
        self._reports = reports
        self.pid = self._report("pid")

    def poll(self):
        """Return the status, or None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout=None):
        """Wait for the status; raises TimeoutExpired."""
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._reports, select.POLLIN)
            if not poll.poll(None if timeout is None else 1000 * timeout):
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = self._report("status", socket.MSG_PEEK)  # because two threads may wait
        return self.returncode

    def _report(self, wanted, flags=0):
        """The number in the next report, which must be of this kind."""
        kind, number = self._reports.recv(100, flags).decode().split()
        assert kind == wanted, f"{self.args} ended with {number} before it began"
        return int(number)

    def send_signal(self, number):
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self):
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)
