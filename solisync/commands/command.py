"""What a subcommand is, and the arguments of several; solisync.commands.table has all of them."""

import argparse
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument or option, as argparse's add_argument takes it."""

    name: str
    help: str
    how: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name in `words`, the function that runs it, as "module:function", and its arguments.

    The module is imported when the subcommand runs, because serving needs none of them. One that destroys data has a
    `question` to confirm first, which is None for arguments that need no answer. Of the arguments named in `either`
    exactly one must be given. One that `acts` takes a reason and a note, for the record.
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
    """A help text as a sentence, for the page that describes its command."""
    return f"{text[0].upper()}{text[1:]}."


USER = argument("user", "username, or id", metavar="USER")
REPLAYS = argument("ids", "ids of replays", metavar="ID", nargs="+")
