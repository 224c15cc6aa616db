"""Run a service with a console for the user of this terminal: `console.py PORT COMMAND…`.

The console has a separate port on this machine, and an admin `local`. The admin is removed at the end of the run; if
the run is killed, the next run replaces the admin. The printed link has a code that works once. The service ends with
this process, even if this process is killed.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

SOLISYNC = ".venv/bin/solisync"
ADMIN = "local"
LOOK_SECONDS = 0.2


def free_port(wanted: int) -> int:
    """Return this port if it is free, else any free port."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                continue
            return int(probe.getsockname()[1])
    raise SystemExit("no port is free")


def administrate(*words: str) -> str | None:
    """Return the output of a `solisync admins` command, or None if it fails."""
    done = subprocess.run([SOLISYNC, "admins", *words], capture_output=True, text=True)
    return None if done.returncode else done.stdout


def ready(port: int) -> bool:
    """Whether the service at this port has its database."""
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        asking.request("GET", "/health/ready")
        return asking.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        asking.close()


def end_with_this_process(group: int) -> None:
    """Start a process that ends this group of processes as soon as this process has ended in any way.

    It watches for the end of a pipe that only this process can write to. Signals of the terminal don't reach it.
    """
    reading, writing = os.pipe()
    if os.fork():
        os.close(reading)
        return
    os.setsid()
    os.close(writing)
    os.read(reading, 1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
    os._exit(0)


port, command = int(sys.argv[1]), sys.argv[2:]
if os.environ.get("SOLISYNC_ADMIN_LISTEN"):  # a developer with an own listener has admins too
    os.execvp(command[0], command)  # noqa: S606
console = free_port(port + 1)
environ = os.environ | {"SOLISYNC_ADMIN_LISTEN": f"tcp:{console}:interface=127.0.0.1"}
wanted: list[int] = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: wanted.append(number))
added = False
# A separate process group: Ctrl-C reaches only this process, which removes the admin while there is a database.
with subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, process_group=0) as service:
    end_with_this_process(service.pid)
    while service.poll() is None and not wanted:
        if not added and ready(port):
            administrate("remove", ADMIN, "--yes")
            added = administrate("add", ADMIN) is not None
            made = administrate("code", ADMIN, "--json")
            if made is not None:
                code = json.loads(made)["code"]
                print(f"The console:  http://solisync.localhost:{console}/#{ADMIN}={code}  (once)", flush=True)
        time.sleep(LOOK_SECONDS)
    if added:
        administrate("remove", ADMIN, "--yes")
    if wanted:
        os.killpg(service.pid, signal.SIGINT if wanted[0] == signal.SIGINT else signal.SIGTERM)
sys.exit(service.returncode)
