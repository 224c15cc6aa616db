"""Keeps temporary files of the tests in memory, where the system has a file system for that."""

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 * 2**30  # the tests' clusters of PostgreSQL take a tenth of it
VARIABLE = "TMPDIR"  # which tempfile reads, here and in processes that the tests start


def keep_files_in_memory():
    """Make temporary files there unless TMPDIR names a place: PostgreSQL then needs a third less processor time.

    Making a database creates a thousand files, which takes the kernel four times as long on a disk.
    """
    if VARIABLE not in os.environ and has_room(MEMORY):
        os.environ[VARIABLE] = str(MEMORY)
        tempfile.tempdir = None  # to be read again


def has_room(directory):
    """Return whether a directory is writable, lets programs run in it, and has room; Docker's has little."""
    if not os.access(directory, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize >= ROOM_BYTES and not found.f_flag & os.ST_NOEXEC
