"""Reader of the unit files of deploy/systemd."""

import re
from pathlib import Path

UNITS = Path(__file__).resolve().parents[2] / "deploy" / "systemd"
SERVICE = UNITS / "solisync.service"
SOCKET = UNITS / "solisync.socket"
BACKUP = UNITS / "solisync-backup.service"
TIMER = UNITS / "solisync-backup.timer"


def settings(file):
    """Return the lines of a unit file: for each name all its values, in order."""
    found = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", file.read_text("utf-8"), re.M):
        found.setdefault(name, []).append(value)
    return found


def environment(credentials="/run/credentials/solisync.service"):
    """Return the environment that the service gets from its unit, with its credentials in that directory."""
    return dict(line.replace("%d", str(credentials)).split("=", 1) for line in settings(SERVICE)["Environment"])
