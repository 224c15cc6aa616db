"""The program of the fork server: imports the service once, and forks a process for each program that a test starts.

A request is one message on standard input, which is a socket. It has the program, its arguments, environment and
directory in JSON, with the descriptors of a socket for reports and of the program's standard input, output and error.
Between this process and the program, a third process waits for the program and reports its status.
"""

import contextlib
import gc
import importlib
import json
import os
import socket
import sys
import time
import types

from tests.harness.compiled_rules import compile_rules, compile_rules_once
from tests.harness.constants import FAST_BCRYPT
from tests.harness.fork_workers import fork_workers, wants_workers

REQUEST_BYTES = 100_000
REACTOR = "twisted.internet.reactor"


def import_service():
    """Import and prepare the parts that all programs need, except a reactor, which holds descriptors."""
    sys.modules[REACTOR] = types.ModuleType(REACTOR)  # klein imports it for its `run`, which the service never calls
    try:
        for name in ("commands.main", "service", "supervisor", "tap", "web.console.app", "worker"):
            importlib.import_module(f"solisync.{name}")
        for command in sys.modules["solisync.commands.table"].COMMANDS:
            command.load()
        for name in ("reset_password", "smoke"):
            importlib.import_module(f"solisync.commands.{name}")
        sys.modules["solisync.access.passwords"].Passwords.__init__.__kwdefaults__["cost"] = FAST_BCRYPT
        compile_rules_once()
        compile_rules(importlib.import_module("tests.harness.error_codes").table())
        sys.modules["solisync.commands.main"].command_parser()
        build = sys.modules["solisync.web.page_build"]
        build.page_files(build.PLAYERS_FILES / "web", build.CLIENT_FILES)
        for name in ("internet.epollreactor", "internet.task", "scripts.twistd"):
            importlib.import_module(f"twisted.{name}")
    finally:
        del sys.modules[REACTOR]
    gc.collect()
    gc.freeze()


def next_program(requests):
    """Serve requests. In a program's forked process, return the function to call; at the end, return None."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 4)
        reap()
        if not request:
            return None
        if os.fork() == 0:
            return start(requests, json.loads(request), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def reap():
    """Reap the processes that have reported, so that their processor time is counted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def start(requests, request, reports, *standard):
    """Fork the program's process, which returns; the parent reports its status, and then exits too."""
    requests.close()
    with socket.socket(fileno=reports) as channel:
        pid = os.fork()
        if pid:
            for descriptor in (0, *standard):
                os.close(descriptor)
            _, status = os.waitpid(pid, 0)
            channel.send(f"status {os.waitstatus_to_exitcode(status)}".encode())
            os._exit(0)
        os.setsid()
        for number, descriptor in enumerate(standard):
            os.dup2(descriptor, number)
            os.close(descriptor)
        if request["directory"] is not None:
            os.chdir(request["directory"])
        os.environ.clear()
        os.environ.update(request["environment"])
        time.tzset()
        sys.argv[:] = request["words"]
        module, _, function = request["program"].partition(":")
        program = getattr(importlib.import_module(module), function)
        channel.send(f"pid {os.getpid()}".encode())
    if wants_workers(request) and (worker := fork_workers()) is not None:
        return worker
    return program


if __name__ == "__main__":
    import_service()
    program = next_program(socket.socket(fileno=os.dup(0)))
    if program is not None:
        sys.exit(program())
