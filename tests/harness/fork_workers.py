"""Forking the workers of a forked service, from a copy of its process made before the program began.

A worker must not inherit objects of the service, such as the reactor. So the copy, which has the modules alone, forks
the worker. The service becomes the worker's parent as the nearest subreaper, see PR_SET_CHILD_SUBREAPER in prctl(2).
"""

import ctypes
import fcntl
import importlib
import json
import os
import signal
import socket
import sys
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
REQUEST_BYTES = 100_000
DESCRIPTORS = 8  # more than a worker receives
PROGRAMS = {"solisync.worker": "solisync.worker:main", "worker": "tests.harness.serve:main"}  # by the last word
LEAST = 100  # more than the descriptors that a worker expects to get
GROUP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # they reach the copy too


def wants_workers(request):
    """Return whether a program will start workers."""
    return "SOLISYNC_WORKERS" in request["environment"] or any("--workers" in word for word in request["words"])


def fork_workers():
    """Let a copy fork the workers of this process. Return None here, and its function in a worker."""
    requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        requests.close()
        return _serve(theirs)
    theirs.close()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    from twisted.internet.process import Process  # not in every process that imports this module

    def fork(process, path, uid, gid, executable, args, environment, *, fdmap):
        request = {"words": args, "environment": environment, "descriptors": list(fdmap)}
        socket.send_fds(requests, [json.dumps(request).encode()], list(fdmap.values()))
        process.pid, process.status = int(requests.recv(100)), -1

    Process._fork = fork
    return None


def _serve(requests):
    """Fork workers until the parent ends; return only in a worker's process, with its function."""
    for number in GROUP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    with open(os.devnull, "r+b") as nothing:
        for number in range(3):
            os.dup2(nothing.fileno(), number)
    while True:
        message, received, _, _ = socket.recv_fds(requests, REQUEST_BYTES, DESCRIPTORS)
        if not message:
            os._exit(0)
        tell, told = os.pipe()
        between = os.fork()
        if between == 0:
            if (pid := os.fork()) == 0:
                requests.close()
                return _begin(json.loads(message), received)
            os.write(told, str(pid).encode())
            os._exit(0)
        os.waitpid(between, 0)  # from now on, the worker is a child of this process's parent
        requests.send(os.read(tell, 100))
        for descriptor in (tell, told, *received):
            os.close(descriptor)


def _begin(request, received):
    """Give this process the state of a new worker."""
    wanted = request["descriptors"]
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, LEAST) for descriptor in received]
    for descriptor, number in zip(moved, wanted, strict=True):
        os.dup2(descriptor, number)
    os.closerange(max(wanted) + 1, os.sysconf("SC_OPEN_MAX"))
    for number in GROUP_SIGNALS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(request["environment"])
    Path("/proc/self/comm").write_text("worker")
    sys.argv[:] = request["words"][-2:]
    module, _, function = PROGRAMS[sys.argv[-1]].partition(":")
    return getattr(importlib.import_module(module), function)
