"""Keeping temporary files of the tests in memory, if the system has a file system for that."""

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 * 2**30  # the tests' clusters of PostgreSQL take a tenth of it
VARIABLE = "TMPDIR"  # tempfile reads it, here and in processes that tests start


def keep_files_in_memory():
    """Keep temporary files in memory unless TMPDIR is set, which saves PostgreSQL a third of its processor time.

    Making a database creates a thousand files, which takes the kernel four times as long on a disk.
    """
    if VARIABLE not in os.environ and has_room(MEMORY):
        os.environ[VARIABLE] = str(MEMORY)
        tempfile.tempdir = None  # makes tempfile read the variable again


def has_room(directory):
    """Return whether a directory is writable, lets programs run in it, and has room; Docker's has little."""
    if not os.access(directory, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize >= ROOM_BYTES and not found.f_flag & os.ST_NOEXEC
