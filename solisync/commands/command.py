"""What a subcommand is, and the arguments of several; solisync.commands.table has all of them."""

import argparse
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .task import Task


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument or option, as argparse's add_argument takes it."""

    name: str
    help: str
    how: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name in `words`, the function that runs it, and its arguments.

    One that destroys data has a `question` to confirm first, which is None for arguments that need no answer. Of the
    arguments named in `either` exactly one must be given. One that `acts` takes a reason and a note, for the record.
    """

    words: str
    run: Callable[[Task], Awaitable[None]]
    help: str
    arguments: tuple[Argument, ...] = ()
    question: Callable[[argparse.Namespace], str | None] | None = None
    either: tuple[str, ...] = ()
    acts: bool = False


def argument(name: str, help: str, **how: Any) -> Argument:
    """An argument or option."""
    return Argument(name, help, how)


USER = argument("user", "username, or id", metavar="USER")
REPLAYS = argument("ids", "ids of replays", metavar="ID", nargs="+")
