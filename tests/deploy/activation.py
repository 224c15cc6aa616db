"""Socket activation: a socket that stays open while services come and go, as in systemd (sd_listen_fds(3))."""

import os
import socket
import subprocess

from tests.deploy.units import SOCKET, settings
from tests.harness.processes import Process

FIRST_DESCRIPTOR = 3


class ActivatedProcess(Process):
    """A command that got a listening socket, with the name that solisync.socket gives it."""

    def __init__(self, listening, words, env, log):
        self.log_path = log
        names = settings(SOCKET)["FileDescriptorName"]
        command = ["/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *map(str, words)]
        with log.open("ab") as output:
            self.popen = subprocess.Popen(
                command,
                env=env | {"LISTEN_FDS": "1", "LISTEN_FDNAMES": ":".join(names)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(FIRST_DESCRIPTOR,),
                preexec_fn=lambda: os.dup2(listening.fileno(), FIRST_DESCRIPTOR),
                start_new_session=True,
            )


def listen(path):
    """Return the socket of solisync.socket, at another path."""
    unit = settings(SOCKET)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    path.chmod(int(unit["SocketMode"][0], 8))
    listening.listen(int(unit["Backlog"][0]))
    return listening
