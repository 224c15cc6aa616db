"""Selects and runs pg_dump, pg_restore and psql.

The candidates are the programs of the embedded PostgreSQL, which are built without TLS, and the programs in PATH. The
pg_dump closest to the server's version, and not older, makes a dump, so that older programs can read the file too. The
newest pg_restore restores it.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError

from ...diagnosis import introspection
from ...embedded.programs import ENVIRONMENT, find_binaries
from ...errors import FatalError
from ...postgres.connection import Connection
from ...postgres.dsn import without_password
from ...process.child import Child
from ...process.tasks import shielded
from ...settings.settings import Settings

_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
_COMPLAINT = re.compile(r"(?: error: |:<stdin>:\d+: )(.*)")  # psql writes the second form, with the line of its input
_LOST_READER = -signal.SIGPIPE
_INHERITED = ("HOME", "PATH")  # in addition to libpq's variables; ~/.pgpass and certificates are found by HOME


async def find_closest(name: str, settings: Settings, environ: Mapping[str, str], connection: Connection) -> str:
    """Return the path of the program that fits the server best, with TLS if `connection` uses it.

    Raises FatalError if no installed program fits.
    """
    server = await introspection.major_version(connection)
    fitting = [each for each in _installed(name, settings, environ, connection.encrypted) if each[0] >= server]
    if not fitting:
        raise _missing(f"{name} of PostgreSQL {server}", connection.encrypted)
    return min(fitting, key=itemgetter(0))[1]


def find_newest(name: str, settings: Settings, environ: Mapping[str, str], *, encrypted: bool = False) -> str:
    """Return the path of the newest program, with TLS if `encrypted`; raises FatalError if there is none."""
    installed = _installed(name, settings, environ, encrypted)
    if not installed:
        raise _missing(name, encrypted)
    return max(installed, key=itemgetter(0))[1]


def _missing(needed: str, encrypted: bool) -> FatalError:
    needed += " with TLS" if encrypted else ""
    return FatalError(f"solisync: this server needs {needed} in PATH: install the client programs of PostgreSQL")


def _installed(name: str, settings: Settings, environ: Mapping[str, str], encrypted: bool) -> list[tuple[int, str]]:
    """Return the major version and the path of each working program of this name."""
    in_path = shutil.which(name, path=environ.get("PATH"))
    places = [] if encrypted else [find_binaries(settings.data_dir, None) / name]
    places += [] if in_path is None else [Path(in_path)]
    return [(major, str(place)) for place in places if (major := _major(place))]


def _major(program: Path) -> int:
    try:  # this blocks the reactor, but a command runs nothing else on it
        said = subprocess.run([program, "--version"], capture_output=True, text=True, env=ENVIRONMENT).stdout
    except OSError:
        return 0
    match = _VERSION.search(said)
    return int(match[1]) if match else 0


class Programs:
    """Runs PostgreSQL's client programs on the database of this DSN, with its password in their environment."""

    def __init__(self, *, reactor: ReactorBase, dsn: str, environ: Mapping[str, str]) -> None:
        try:
            self.dsn, password = without_password(dsn)
        except ValueError as error:
            raise FatalError(f"solisync: DATABASE_URL {error}") from None
        self._reactor = reactor
        self._environment = ENVIRONMENT | {
            name: value for name, value in environ.items() if name in _INHERITED or name.startswith("PG")
        }
        if password is not None:
            self._environment["PGPASSWORD"] = password

    async def run(self, *words: str, heard: Callable[[str], None] = lambda line: None) -> str:
        """Run a program and return its output; `heard` is called with each line of its standard error.

        If the program fails, raises FatalError with the errors in those lines. A cancelled run interrupts the program
        and waits for its end.
        """
        return await self.pipe(words, heard=heard)

    async def pipe(self, *commands: Sequence[str], heard: Callable[[str], None] = lambda line: None) -> str:
        """Like `run`, for a pipeline of programs; returns the output of the last program."""
        programs = [_Program(words, heard) for words in commands]
        self._start(programs)
        try:
            statuses = [await shielded(program.ended) for program in programs]
        except CancelledError:
            for program in programs:
                program.signal(signal.SIGINT)  # PostgreSQL's programs then cancel their statement, too
            for program in programs:
                await shielded(program.ended)
            raise
        if failed := [each for each in zip(programs, statuses, strict=True) if each[1]]:
            # The first program that failed is the cause, unless SIGPIPE ended it because a later one had failed.
            cause, status = next((each for each in failed if each[1] != _LOST_READER), failed[0])
            said = " / ".join(cause.complaints) or f"status {status}"
            raise FatalError(f"solisync: {Path(cause.words[0]).name} failed: {said}")
        return programs[-1].written.decode("utf-8", "replace")

    def _start(self, programs: Sequence["_Program"]) -> None:
        between = [os.pipe() for _ in programs[1:]]
        readings: list[str | int] = ["w", *(reading for reading, _ in between)]
        writings: list[str | int] = [*(writing for _, writing in between), "r"]
        try:
            for program, reading, writing in zip(programs, readings, writings, strict=True):
                program.start(self._reactor, program.words, self._environment, {0: reading, 1: writing, 2: "r"})
        finally:
            for end in chain.from_iterable(between):  # otherwise the pipes stay open after the programs
                os.close(end)


class _Program(Child):
    def __init__(self, words: Sequence[str], heard: Callable[[str], None]) -> None:
        super().__init__()
        self.words = words
        self.written = b""
        self.complaints: list[str] = []
        self._heard = heard
        self._rest = b""

    def outReceived(self, data: bytes) -> None:
        self.written += data

    def errReceived(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace")
            self._heard(text)
            if found := _COMPLAINT.search(text):
                self.complaints.append(found[1])
