"""The log of the embedded server: of bounded size, without statements, and the source of the reason for its end.

The server writes to the file itself, because it must be able to end cleanly even if this process is killed. So this
module removes statements a moment after the server wrote them.
"""

import os
import re
import shutil
from typing import IO

from .data_directory import DataDirectory

SIZE_MAX = 4 * 2**20  # the limit of the log, and of the older part beside it

# The server's settings keep statements out of its log, because statements contain bcrypt hashes. But a PANIC, such as
# the one when the disk has no room for the write-ahead log, quotes its statement in spite of the settings.
_STATEMENT = re.compile(rb"(?<=STATEMENT:  )[^\n]*(?:\n\t[^\n]*)*")
_REASON = re.compile(r"(?:(FATAL|PANIC|error|could not)|LOG|HINT|DETAIL)\b.*")
_CONNECTING = "the database system is"  # starting up, not yet accepting connections: replies to clients


class ServerLog:
    """The log in a data directory, of at most `size` bytes."""

    def __init__(self, directory: DataDirectory, size: int = SIZE_MAX) -> None:
        self._directory = directory
        self._size = size
        self._begin = 0  # where the output of the last program begins
        self._tidied = 0  # there are no statements before this position

    def open(self) -> IO[bytes]:
        """Open the log as the output of a program that starts now."""
        self.tidy()
        file = self._directory.open_for_writing(self._directory.log.name)
        self._begin = os.fstat(file.fileno()).st_size
        return file

    def reason(self) -> str:
        """The lines of the last program that may explain its end, joined into one."""
        try:
            lines = self._directory.log.read_bytes()[self._begin :].decode("utf-8", "replace").splitlines()
        except OSError:
            lines = []
        found = [match for line in lines if (match := _REASON.search(line)) and _CONNECTING not in line]
        while any(match[1] for match in found) and not found[-1][1]:
            found.pop()  # lines of processes that ended after the error
        return " / ".join([match[0] for match in found[-4:]] or [line.strip() for line in lines[-3:]]) or "it gave none"

    def tidy(self) -> None:
        """Blank the statements in new text, and start a new log if this one is too long."""
        try:
            size = self._directory.log.lstat().st_size
            if size == self._tidied:
                return
            # Not by open_for_writing, which appends.
            with os.fdopen(os.open(self._directory.log, os.O_RDWR | os.O_NOFOLLOW), "r+b", buffering=0) as file:
                kept = max(0, size - self._size)
                self._blank_statements(file, max(self._tidied, kept))
                if kept:
                    self._begin_anew(file, kept)
        except OSError:
            pass  # there is no log yet, or the disk fails, which the server reports itself

    def _blank_statements(self, file: IO[bytes], begin: int) -> None:
        file.seek(begin)
        text = file.read()
        for statement in _STATEMENT.finditer(text):
            os.pwrite(file.fileno(), b"-" * len(statement[0]), begin + statement.start())
        self._tidied = begin + len(text)

    def _begin_anew(self, file: IO[bytes], kept: int) -> None:
        """Copy the end of the log to the older part, and empty the log; the server appends to it."""
        older = self._directory.log.with_suffix(".log.1")
        try:
            older.unlink(missing_ok=True)
            with self._directory.open_for_writing(older.name) as copy:
                file.seek(kept)
                shutil.copyfileobj(file, copy)
        finally:
            file.truncate(0)
            self._begin = self._tidied = 0
