r"""What a command writes: lines for people, or JSON for programs; and its progress, on standard error.

Names and documents come from players. What a terminal might obey in them (control characters, also those of Unicode) is
written as an escape: always in the lines for people, and in JSON, which programs want to the byte, on a terminal.
"""

import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

PROGRESS_SECONDS = 0.2  # between two looks at the progress on a terminal
PROGRESS_LINE_SECONDS = 5.0  # the same where each is a line of its own

_UNSAFE_IN_JSON = re.compile(r"[^\n\x20-\x7e]")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the field of a record under this heading, and how wide its texts mostly are."""

    field: str
    width: int
    right: bool = False

    def fit(self, text: str) -> str:
        """The text, filled up to the width of the column."""
        return text.rjust(self.width) if self.right else text.ljust(self.width)


class Output:
    """Writes records and sentences to `stream`: as JSON, one object in each line, or for people."""

    def __init__(self, stream: TextIO, *, json: bool) -> None:
        self.json = json
        self.terminal = stream.isatty()
        self._stream = stream

    def say(self, text: str, **facts: object) -> None:
        """A sentence for people; for programs the facts in it."""
        self.raw(to_json(facts) + "\n") if self.json else self._stream.write(harmless(text) + "\n")

    def table(self, columns: Sequence[Column]) -> Callable[[dict[str, object]], None]:
        """Write the headings; returns what writes a record below them, which may have fields that aren't shown."""
        if self.json:
            return lambda record: self.raw(to_json(record) + "\n")
        self._cells(columns, [column.field.replace("_", " ").upper() for column in columns])
        return lambda record: self._cells(columns, [shown(record[column.field]) for column in columns])

    def facts(self, record: dict[str, object]) -> None:
        """One record, a line for each field."""
        if self.json:
            self.raw(to_json(record) + "\n")
            return
        width = max(len(name) for name in record)
        for name, value in record.items():
            self._stream.write(f"{name.replace('_', ' '):<{width}}  {shown(value)}\n")

    def raw(self, json: str) -> None:
        """JSON as it is; on a terminal with escapes for everything that is not plain ASCII."""
        self._stream.write(_UNSAFE_IN_JSON.sub(_escape, json) if self.terminal else json)

    def text(self, text: str) -> None:
        """Text that is no JSON as it is, but for a terminal."""
        self._stream.write("\n".join(map(harmless, text.split("\n"))) if self.terminal else text)

    def _cells(self, columns: Sequence[Column], cells: list[str]) -> None:
        line = "  ".join(column.fit(cell) for column, cell in zip(columns, cells, strict=True))
        self._stream.write(line.rstrip() + "\n")


class Progress:
    """Says on standard error how far a command has come: on a terminal in one line, else, if `wanted`, now and then."""

    def __init__(self, stream: TextIO, *, wanted: bool = False) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._shown = self._terminal or wanted
        self._next = 0.0

    def report(self, text: str, *, now: bool = False) -> None:
        """Show this, unless something else was shown a moment ago and it needn't be `now`."""
        moment = time.monotonic()
        if self._shown and (now or moment >= self._next):
            self._next = moment + (PROGRESS_SECONDS if self._terminal else PROGRESS_LINE_SECONDS)
            self._stream.write(f"\r\x1b[K{harmless(text)}" if self._terminal else f"{harmless(text)}\n")
            self._stream.flush()

    def clear(self) -> None:
        """Leave the line to what is written next."""
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def end(self, text: str) -> None:
        """The last report, which stays."""
        self.report(text, now=True)
        if self._terminal:
            self._stream.write("\n")


def harmless(text: str) -> str:
    """The text in one line, with escapes for what a terminal might obey or hide."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def shown(value: object) -> str:
    """A value as people read it, in one line."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        case _:
            return harmless(str(value))


def bytes_shown(count: float) -> str:
    """A number of bytes as people read it."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.{0 if unit == 'B' else 1}f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def to_json(value: Any) -> str:
    """The value as JSON in one line; times in UTC, as everywhere."""
    return msgspec.json.encode(value).decode()


def _escape(match: re.Match[str]) -> str:
    # JSON has such characters only inside of strings, but for white space, which may be any white space
    character = match[0]
    if character < " ":
        return " "
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def confirm(question: str) -> None:
    """Ask on the terminal; raises SystemExit unless the answer is yes, with status 2 where there is nobody to ask."""
    if not sys.stdin.isatty():
        sys.stderr.write("solisync: this destroys something and there is nobody to ask: say --yes\n")
        raise SystemExit(2)
    try:
        sys.stderr.write(f"{harmless(question)} [y/N] ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise SystemExit("nothing was changed")
