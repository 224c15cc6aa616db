"""The backups in one directory: their names, made of time and database, and the deletion of old ones."""

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

ABANDONED_SECONDS = 86_400.0  # pg_dump writes more often, so the writer of an older file is gone

_TIME = r"solisync-\d{8}T\d{6}\.\d{6}Z"  # followed by a dash, the database and ".dump"


def new_name(now: datetime, identity: str) -> str:
    """Return the name of a backup that begins at this time in UTC, of the database with this identity.

    The names of one database sort by time.
    """
    return f"solisync-{now:%Y%m%dT%H%M%S.%f}Z-{hashlib.sha256(identity.encode()).hexdigest()[:8]}.dump"


def prune(directory: Path, keep: int, *, made: str) -> list[str]:
    """Delete old backups of a database, and files that killed runs left.

    The newest `keep` backups and the one just `made` stay, and so do all files with other names. Returns the names of
    the deleted backups.
    """
    _sync(directory)  # the new backup must be safe from a crash before an old one is deleted
    backup = _TIME + re.escape(made[made.rindex("-") :])
    old = sorted(_files(directory, backup), reverse=True)[keep:]
    left = [name for name in _files(directory, rf"\.{backup}\..+\.part") if _is_abandoned(directory / name)]
    deleted = [name for name in old if name != made]
    for name in deleted + left:
        (directory / name).unlink(missing_ok=True)  # another run may delete it first
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
