"""The backups in one directory: their names, which have the time and the database in them, and which are deleted."""

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

ABANDONED_SECONDS = 86_400.0  # pg_dump writes more often than that, so a file that stays as it is has lost its writer

_TIME = r"solisync-\d{8}T\d{6}\.\d{6}Z"  # and then a dash, the database and ".dump"


def new_name(now: datetime, identity: str) -> str:
    """The name of a backup of the database with this identity that begins at this time in UTC; names sort by time."""
    return f"solisync-{now:%Y%m%dT%H%M%S.%f}Z-{hashlib.sha256(identity.encode()).hexdigest()[:8]}.dump"


def prune(directory: Path, keep: int, *, made: str) -> list[str]:
    """Delete all backups of a database but the newest `keep` and the one just `made`, and what killed runs of it left.

    Returns the names of the deleted backups. Files with other names stay, whatever they are.
    """
    _sync(directory)  # the new backup must survive a crash before an old one goes
    backup = _TIME + re.escape(made[made.rindex("-") :])
    old = sorted(_files(directory, backup), reverse=True)[keep:]
    left = [name for name in _files(directory, rf"\.{backup}\..+\.part") if _is_abandoned(directory / name)]
    deleted = [name for name in old if name != made]
    for name in deleted + left:
        (directory / name).unlink(missing_ok=True)  # another run may do the same
    return deleted


def _files(directory: Path, pattern: str) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if re.fullmatch(pattern, entry.name, re.ASCII) and entry.is_file(follow_symlinks=False):
                yield entry.name


def _is_abandoned(file: Path) -> bool:
    with suppress(FileNotFoundError):
        return time.time() - file.stat().st_mtime > ABANDONED_SECONDS
    return False


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
