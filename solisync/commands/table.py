"""The table of subcommands: names, arguments, and the functions that run them."""

import argparse
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import analytics, export, import_original, leaderboard, replays, seed, sessions, status, users
from .argument_values import count, moment, prefix, some
from .backup import backup
from .doctor import doctor
from .task import Task

NOUNS = {
    "users": "manage players",
    "sessions": "manage sessions",
    "leaderboard": "manage entries of the leaderboard",
    "replays": "manage replays",
    "analytics": "export analytics events",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument or option, as argparse's add_argument takes it."""

    name: str
    help: str
    how: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name in `words`, the function that runs it, and its arguments.

    One that destroys data has a `question` to confirm first. Of the arguments named in `either` exactly one must be
    given.
    """

    words: str
    run: Callable[[Task], Awaitable[None]]
    help: str
    arguments: tuple[Argument, ...] = ()
    question: Callable[[argparse.Namespace], str] | None = None
    either: tuple[str, ...] = ()


def _argument(name: str, help: str, **how: Any) -> Argument:
    return Argument(name, help, how)


_USER = _argument("user", "username, or id", metavar="USER")
_PROGRESS = _argument("--progress", "report progress even if standard error is not a terminal", action="store_true")

COMMANDS = (
    Command(
        "users list",
        users.show_list,
        "list players, with their last use and the space that they take",
        (
            _argument(
                "--name", "only players whose names begin with PREFIX", metavar="PREFIX", type=prefix, default=""
            ),
            _argument("--since", "only players who registered on this day or later", metavar="DATE", type=moment),
            _argument(
                "--order",
                "by name (the default), or the newest, last used or largest first (at most 1000 players)",
                choices=("name", "registered", "used", "bytes"),
                default="name",
            ),
            _argument("--limit", "list at most N players", metavar="N", type=count),
        ),
    ),
    Command("users show", users.show_one, "show facts and counts about a player", (_USER,)),
    Command(
        "users rename",
        users.rename,
        "change a player's username; the old one becomes free",
        (_USER, _argument("username", "the new username", metavar="USERNAME")),
    ),
    Command(
        "users delete",
        users.delete,
        "delete a player and all their data, as players can themselves; analytics events lose the name",
        (_USER,),
        lambda chosen: f"Delete '{chosen.user}' and all their data?",
    ),
    Command(
        "users export",
        export.export,
        "write all data about a player, without password and tokens, as one JSON document",
        (_USER,),
    ),
    Command("sessions list", sessions.show_list, "list a player's sessions", (_USER,)),
    Command(
        "sessions revoke",
        sessions.revoke,
        "end the sessions of a player or of everybody; access tokens stay valid until they expire, at most a day later",
        (
            _argument("user", "username, or id", metavar="USER", nargs="?"),
            _argument("--everyone", "end all sessions of all players", action="store_true"),
        ),
        lambda chosen: f"End all sessions of {'everybody' if chosen.everyone else repr(chosen.user)}?",
        either=("user", "--everyone"),
    ),
    Command(
        "leaderboard hide",
        leaderboard.hide,
        "hide a player's entry until the player opts in again; the bests are kept",
        (_USER,),
    ),
    Command(
        "leaderboard show",
        leaderboard.show,
        "show a player's hidden entry again, even if the player has opted out",
        (_USER,),
    ),
    Command(
        "replays delete",
        replays.delete,
        "delete replays; bests on the leaderboard stay",
        (_argument("ids", "ids of replays", metavar="ID", nargs="+"),),
        lambda chosen: f"Delete {len(chosen.ids)} replay{'s' if len(chosen.ids) > 1 else ''}?",
    ),
    Command(
        "replays check",
        replays.check,
        "check replays that have no verdict: the given ones before all others, or all of them after all others",
        (
            _argument("ids", "ids of replays", metavar="ID", nargs="*"),
            _argument("--again", "also replays that have a verdict", action="store_true"),
        ),
    ),
    Command(
        "replays show",
        replays.show,
        "show a replay's verdict and draw its deal",
        (
            _argument("id", "id of a replay", metavar="ID"),
            _argument("--boards", "draw the board after each step", action="store_true"),
        ),
    ),
    Command(
        "analytics export",
        analytics.export,
        "write analytics events in the order of their arrival",
        (
            _argument("--format", "jsonl (one object a line) or csv", choices=("jsonl", "csv"), default="jsonl"),
            _argument("--since", "only events from this day or time on, in UTC", metavar="DATE", type=moment),
            _argument("--until", "only events before this day or time, in UTC", metavar="DATE", type=moment),
            _PROGRESS,
        ),
    ),
    Command(
        "backup",
        backup.backup,
        "write the whole database, without sessions, to a file for pg_restore",
        (
            _argument("file", "the file to write", metavar="FILE", nargs="?"),
            _argument("--into", "write to a file in DIR that is named by the time", metavar="DIR"),
            _argument("--keep", "delete all but the newest N of such files", metavar="N", type=some),
            _argument("--force", "replace the file if it exists", action="store_true"),
            _PROGRESS,
        ),
        either=("file", "--into"),
    ),
    Command(
        "restore",
        backup.restore,
        "fill an empty database from a backup and update its schema; all players have to log in again",
        (_argument("file", "the file to read", metavar="FILE"), _PROGRESS),
    ),
    Command(
        "import-original",
        import_original.bring,
        "import the SQLite file of an original server, which may be running; can be repeated",
        (
            _argument("file", "the SQLite file of the original server", metavar="FILE"),
            _argument("--avatars", "the directory in which the original server keeps avatars", metavar="DIR"),
            _argument("--dry-run", "report what an import would do, and change nothing", action="store_true"),
            _argument("--allow-refused", "exit with status 0 even if rows were refused", action="store_true"),
            _PROGRESS,
        ),
    ),
    Command(
        "seed",
        seed.fill,
        "fill a database with made-up players, to size a machine or to test clients",
        (
            _argument("--players", "number of players", metavar="N", type=some, required=True),
            _argument(
                "--replays", "number of replays of all these players together", metavar="N", type=count, default=0
            ),
            _argument(
                "--password-stdin",
                "read one password for all of them from standard input; without it nobody can log in as them",
                action="store_true",
            ),
            _argument("--force", "fill the database even if it has real players", action="store_true"),
            _PROGRESS,
        ),
    ),
    Command("status", status.show, "show versions, the database and its row counts"),
    Command("doctor", doctor.examine, "check the settings, the host and the database for problems"),
)
