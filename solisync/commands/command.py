"""The row type of the table of subcommands, and the types of their arguments.

solisync.commands.table has the rows. An argument's type converts its text, or raises ArgumentTypeError.
"""

import argparse
import re
from argparse import ArgumentTypeError
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, cast

from ..rules import shapes
from ..rules.administration import KEPT_DAYS


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument or option, as argparse's add_argument takes it."""

    name: str
    help: str
    how: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name in `words`, the function that runs it, as "module:function", and its arguments.

    The module is imported when the subcommand runs, because the service itself doesn't need it. A subcommand that
    destroys data has a `question` to confirm first, which returns None if these arguments need no confirmation. Exactly
    one of the arguments named in `either` must be given. A subcommand that `acts` takes a reason and a note for the
    record.
    """

    words: str
    function: str
    help: str
    arguments: tuple[Argument, ...] = ()
    question: Callable[[argparse.Namespace], str | None] | None = None
    either: tuple[str, ...] = ()
    acts: bool = False

    def load(self) -> Callable[[Any], Awaitable[None]]:
        """Import the function, which takes a Task."""
        module, _, name = self.function.partition(":")
        function = getattr(import_module(f"{__package__}.{module}"), name)
        return cast(Callable[[Any], Awaitable[None]], function)


def argument(name: str, help: str, **how: Any) -> Argument:
    """An argument or option."""
    return Argument(name, help, how)


def sentence(text: str) -> str:
    """Return a help text as a sentence, for the command's own help page."""
    return f"{text[0].upper()}{text[1:]}."


USER = argument("user", "username or id", metavar="USER")
REPLAYS = argument("ids", "ids of replays", metavar="ID", nargs="+")


_SPAN = re.compile(r"([0-9]{1,4})([mhdw])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def count(text: str) -> int:
    """A whole number."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ArgumentTypeError(f"must be a whole number, not {text!r}")
    return int(text)


def some(text: str) -> int:
    """A whole number of at least 1."""
    if not count(text):
        raise ArgumentTypeError("must be at least 1")
    return count(text)


def days(text: str) -> int:
    """A number of days of which numbers are kept."""
    if not 1 <= count(text) <= KEPT_DAYS:
        raise ArgumentTypeError(f"must be from 1 to {KEPT_DAYS}")
    return count(text)


def share(text: str) -> float:
    """A share, from 0 to 1."""
    if not re.fullmatch(r"0|1|[01]?\.[0-9]{1,6}", text, re.ASCII) or not 0 <= float(text) <= 1:
        raise ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return float(text)


def prefix(text: str) -> str:
    """A prefix of usernames."""
    if not all(character.isascii() and (character.isalnum() or character == "_") for character in text):
        raise ArgumentTypeError(f"must be letters, digits and underscores, not {text!r}")
    return text


def moment(text: str) -> datetime:
    """A time in UTC: a date, a date and time, today, yesterday, or a span before now, such as 7d."""
    now = datetime.now(UTC)
    if text in ("today", "yesterday"):
        return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=text == "yesterday")
    found = now - ago if (ago := _span(text)) else shapes.moment(text)
    if found is None:
        raise ArgumentTypeError(f"must be like 2026-11-20, 2026-11-20T12:00:00Z, yesterday or 7d, not {text!r}")
    return found


def time_to_come(text: str) -> datetime:
    """A future time in UTC: a date, a date and time, or a span from now, such as 7d."""
    now = datetime.now(UTC)
    found = now + ahead if (ahead := _span(text)) else shapes.moment(text)
    if found is None:
        raise ArgumentTypeError(f"must be like 2026-11-20, 2026-11-20T12:00:00Z or 7d, not {text!r}")
    if found <= now:
        raise ArgumentTypeError(f"must be in the future, not {text!r}")
    return found


def _span(text: str) -> timedelta | None:
    """A time span such as 30m, 12h, 7d or 2w; None for any other text."""
    found = _SPAN.fullmatch(text)
    return int(found[1]) * _UNITS[found[2]] if found else None
