"""A Debian 13 with systemd, booted in a container without a network, in which documented commands run."""

import contextlib
import os
import re
import shutil
import subprocess
import time

import pytest

from tests.harness.concurrency import wait_for
from tests.harness.constants import PATIENCE
from tests.harness.http_requests import Connection
from tests.harness.processes import PROC, children

PACKAGES = "systemd,systemd-sysv,dbus,python3-venv,python3-pip,openssl,ca-certificates,curl,nginx,git,procps"
PROGRAMS = ("mmdebstrap", "systemd-nspawn", "nsenter")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BOOT_SECONDS = 120
COMMAND_SECONDS = 600  # an installation on a busy machine

_lacking = [name for name in PROGRAMS if shutil.which(name) is None] + ["root"] * (os.geteuid() != 0)
needs_debian = [
    pytest.mark.needs(),
    pytest.mark.skipif(bool(_lacking), reason=f"a Debian can't be booted without {', '.join(_lacking)}"),
]


class Debian:
    """The booted system, whose files are below `root`."""

    def __init__(self, root, first):
        self.root = root
        self._first = first  # its process 1

    def run(self, script, *, online=False, check=True):
        """Run lines of bash as its root, in /root/solisync; return the output. Installing packages needs to be online.

        `online` commands see this machine's network, and pip's settings of this machine.
        """
        namespaces = ["--mount", "--uts", "--ipc", "--pid", "--cgroup"] + ([] if online else ["--net"])
        pip = {name: value for name, value in os.environ.items() if online and name.startswith("PIP_")}
        environ = {"HOME": "/root", "PATH": PATH, "LC_ALL": "C.UTF-8"} | pip
        words = ["nsenter", "--target", str(self._first), *namespaces, "--", "/usr/bin/env", "-i"]
        words += [f"{name}={value}" for name, value in environ.items()]
        words += ["bash", "-c", f"set -eo pipefail; mkdir -p ~/solisync; cd ~/solisync\n{script}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS)
        output = done.stdout + done.stderr
        assert not check or done.returncode == 0, f"status {done.returncode}:\n{script}\n{output}"
        return output

    def ask(self, method, path, body=None, *, socket="http.sock", bearer=None):
        """Send a request to a unix socket of the service, and return the answer."""
        with contextlib.closing(Connection(unix=f"/proc/{self._first}/root/run/solisync/{socket}")) as connection:
            return connection.ask(method, path, body, bearer=bearer)


@contextlib.contextmanager
def booted(root, repository):
    """Make a Debian in the directory `root`, boot it, and shut it down at the end."""
    words = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "trixie", str(root)]
    made = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    if made.returncode != 0:
        pytest.skip(f"mmdebstrap can't make a Debian here: {made.stderr.strip().splitlines()[-1:]}")
    subprocess.run(["git", "clone", "--quiet", repository, root / "root" / "solisync"], check=True)
    shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
    words = ["systemd-nspawn", "--quiet", f"--directory={root}", "--boot", "--register=no", "--keep-unit"]
    words += ["--private-network", "--resolv-conf=off", "--machine=solisync-test", "--hostname=play"]
    words += [f"--bind-ro={file}" for file in _pip_files()]
    with (root.parent / "console.log").open("wb") as log:
        machine = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        if not _boots(machine):
            pytest.skip("systemd doesn't boot in a container here: " + (root.parent / "console.log").read_text()[-300:])
        (first,) = children(machine.pid)
        debian = Debian(root, first)
        wait_for(lambda: re.search("running|degraded", debian.run("systemctl is-system-running", check=False)))
        yield debian
    finally:
        for first in children(machine.pid) if machine.poll() is None else ():
            os.kill(first, 9)
        with contextlib.suppress(subprocess.TimeoutExpired):
            machine.wait(PATIENCE)
        machine.kill()
        machine.wait()


def _boots(machine):
    """Wait until systemd runs in the container; False if it ends before."""
    deadline = time.monotonic() + BOOT_SECONDS
    while machine.poll() is None and time.monotonic() < deadline:
        for first in children(machine.pid):
            if (PROC / str(first) / "root" / "run" / "systemd" / "private").exists():
                return True
        time.sleep(0.1)
    return False


def _pip_files():
    """The files of pip's settings on this machine."""
    files = ["/etc/pip.conf", *(value for name, value in os.environ.items() if name.startswith("PIP_"))]
    return sorted({file for file in files if file.startswith("/") and os.path.exists(file)})
