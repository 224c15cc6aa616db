r"""The output of a command, as text or as JSON Lines, and its progress on standard error.

Names and documents come from players, so they may contain control characters, Unicode's included, that a terminal would
obey. Text output always escapes them. JSON escapes them only on a terminal, because programs need the original bytes.
"""

import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

PROGRESS_SECONDS = 0.2  # between two reports on a terminal, where each overwrites the last
PROGRESS_LINE_SECONDS = 5.0  # between two reports elsewhere, where each has its own line

_UNSAFE_IN_JSON = re.compile(r"[^\n\x20-\x7e]")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its field, whose name is also the heading, and a width that fits most values."""

    field: str
    width: int
    right: bool = False

    def fit(self, text: str) -> str:
        """Return the text, padded to the width of the column."""
        return text.rjust(self.width) if self.right else text.ljust(self.width)


class Output:
    """Writes records and sentences to `stream`, as text, or with `json` as one object per line."""

    def __init__(self, stream: TextIO, *, json: bool) -> None:
        self.json = json
        self.terminal = stream.isatty()
        self._stream = stream

    def say(self, text: str, **facts: object) -> None:
        """Write a sentence, or in JSON its facts."""
        self.raw(to_json(facts) + "\n") if self.json else self._stream.write(harmless(text) + "\n")

    def table(self, columns: Sequence[Column]) -> Callable[[dict[str, object]], None]:
        """Write the headings; returns a function that writes one record: in JSON all fields, in text the columns."""
        if self.json:
            return lambda record: self.raw(to_json(record) + "\n")
        self._cells(columns, [column.field.replace("_", " ").upper() for column in columns])
        return lambda record: self._cells(columns, [shown(record[column.field]) for column in columns])

    def facts(self, record: dict[str, object]) -> None:
        """Write one record; text has a line for each field."""
        if self.json:
            self.raw(to_json(record) + "\n")
            return
        width = max(len(name) for name in record)
        for name, value in record.items():
            self._stream.write(f"{name.replace('_', ' '):<{width}}  {shown(value)}\n")

    def raw(self, json: str) -> None:
        """Write JSON unchanged; a terminal gets escapes for everything outside printable ASCII."""
        self._stream.write(_UNSAFE_IN_JSON.sub(_escape, json) if self.terminal else json)

    def text(self, text: str) -> None:
        """Write text that isn't JSON, such as CSV, unchanged; a terminal gets control characters escaped."""
        self._stream.write("\n".join(map(harmless, text.split("\n"))) if self.terminal else text)

    def _cells(self, columns: Sequence[Column], cells: list[str]) -> None:
        line = "  ".join(column.fit(cell) for column, cell in zip(columns, cells, strict=True))
        self._stream.write(line.rstrip() + "\n")


class ProgressLine:
    """Reports the progress of a command: in one line on a terminal; elsewhere, if `wanted`, in a new line each time."""

    def __init__(self, stream: TextIO, *, wanted: bool = False) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._shown = self._terminal or wanted
        self._next = 0.0

    def report(self, text: str, *, now: bool = False) -> None:
        """Show the text, unless another report was just shown and this one needn't be `now`."""
        moment = time.monotonic()
        if self._shown and (now or moment >= self._next):
            self._next = moment + (PROGRESS_SECONDS if self._terminal else PROGRESS_LINE_SECONDS)
            self._stream.write(f"\r\x1b[K{harmless(text)}" if self._terminal else f"{harmless(text)}\n")
            self._stream.flush()

    def clear(self) -> None:
        """Clear the line on a terminal, before other output."""
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def remark(self, text: str) -> None:
        """Write a line, whether or not progress is shown."""
        self.clear()
        self._stream.write(f"{harmless(text)}\n")

    def end(self, text: str) -> None:
        """Show the last report, which stays on the terminal."""
        self.report(text, now=True)
        if self._terminal:
            self._stream.write("\n")


def harmless(text: str) -> str:
    """Return the text in one line, with escapes for characters that a terminal would obey or hide."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def shown(value: object) -> str:
    """Return a value as text in one line."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        case _:
            return harmless(str(value))


def to_json(value: Any) -> str:
    """Return a value as JSON in one line."""
    return msgspec.json.encode(value).decode()


def _escape(match: re.Match[str]) -> str:
    # Outside of strings, the only such characters in JSON are white space, which a space can replace.
    character = match[0]
    if character < " ":
        return " "
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def confirm(question: str) -> None:
    """Ask on the terminal; raises SystemExit unless the answer is yes, with status 2 if there is no terminal."""
    if not sys.stdin.isatty():
        sys.stderr.write("solisync: can't ask for confirmation without a terminal: use --yes\n")
        raise SystemExit(2)
    try:
        sys.stderr.write(f"{harmless(question)} [y/N] ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise SystemExit("nothing was changed")
