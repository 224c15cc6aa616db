"""The table of subcommands, from which their parsers are made: names, arguments, and the functions that run them."""

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from ..rules.administration import NOTE_MAX, REASONS
from ..settings.settings import ENV_FILE, ENV_FILE_HELP
from ..settings.table import TABLE
from . import analytics, export, import_original, leaderboard, replays, seed, sessions, status, users
from .argument_values import count, moment, prefix, some
from .backup import backup
from .doctor import doctor
from .output import Output, ProgressLine, confirm
from .running import run
from .task import Task

NOUNS = {
    "users": "manage players",
    "sessions": "manage sessions",
    "leaderboard": "manage entries of the leaderboard",
    "replays": "manage replays",
    "analytics": "export analytics events",
}
PLACES = ("data-dir", "database-url-file")  # the options that select the database


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument or option, as argparse's add_argument takes it."""

    name: str
    help: str
    how: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name in `words`, the function that runs it, and its arguments.

    One that destroys data has a `question` to confirm first, or None where there is nothing to ask. Of the arguments
    named in `either` exactly one must be given. One that `acts` takes a reason and a note for the record.
    """

    words: str
    run: Callable[[Task], Awaitable[None]]
    help: str
    arguments: tuple[Argument, ...] = ()
    question: Callable[[argparse.Namespace], str] | None = None
    either: tuple[str, ...] = ()
    acts: bool = False


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
                "--name",
                "only players whose names begin with PREFIX",
                metavar="PREFIX",
                type=prefix,
                default="",
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
        acts=True,
    ),
    Command(
        "users delete",
        users.delete,
        "delete a player and all their data, as players can themselves; analytics events lose the name",
        (_USER,),
        lambda chosen: f"Delete '{chosen.user}' and all their data?",
        acts=True,
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
            _argument("--access", "refuse the player's access tokens too, within a second", action="store_true"),
            _argument("user", "username, or id", metavar="USER", nargs="?"),
            _argument("--everyone", "end all sessions of all players", action="store_true"),
        ),
        lambda chosen: f"End all sessions of {'everybody' if chosen.everyone else repr(chosen.user)}?",
        either=("user", "--everyone"),
        acts=True,
    ),
    Command(
        "leaderboard hide",
        leaderboard.hide,
        "hide a player's entry until the player opts in again; the bests are kept",
        (_USER, _argument("--lock", "lock the profile too, so that it stays hidden", action="store_true")),
        acts=True,
    ),
    Command(
        "leaderboard show",
        leaderboard.show,
        "show a player's hidden entry again, even if the player has opted out",
        (_USER,),
        acts=True,
    ),
    Command(
        "replays delete",
        replays.delete,
        "delete replays; bests on the leaderboard stay",
        (_argument("ids", "ids of replays", metavar="ID", nargs="+"),),
        lambda chosen: f"Delete {len(chosen.ids)} replay{'s' if len(chosen.ids) > 1 else ''}?",
        acts=True,
    ),
    Command(
        "replays check",
        replays.check,
        "check replays that have no verdict: the given ones before all others, or all of them after all others",
        (
            _argument("ids", "ids of replays", metavar="ID", nargs="*"),
            _argument("--again", "also replays that have a verdict", action="store_true"),
        ),
        acts=True,
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
                "--replays",
                "number of replays of all these players together",
                metavar="N",
                type=count,
                default=0,
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


def add_commands(parser: argparse.ArgumentParser) -> "argparse._SubParsersAction[argparse.ArgumentParser]":
    """Add the subcommands to a parser; parsed arguments have the Command as `command`, or None.

    Returns the action to add others to.
    """
    parser.set_defaults(command=None)
    group = parser.add_subparsers(title="administration", metavar="COMMAND", help="COMMAND --help describes it")
    nouns = {}
    for noun, text in NOUNS.items():
        under = group.add_parser(noun, help=text, description=f"{text.capitalize()}.", allow_abbrev=False)
        nouns[noun] = under.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        noun, _, verb = command.words.partition(" ")
        place, name = (nouns[noun], verb) if verb else (group, noun)
        description = command.help[0].upper() + command.help[1:] + "."
        _add_arguments(place.add_parser(name, help=command.help, description=description, allow_abbrev=False), command)
    return group


def subparsers(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The parsers of the words that may come next."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return cast(Mapping[str, argparse.ArgumentParser], action.choices)
    return {}


def _add_arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    parser.set_defaults(command=command)
    choice = parser.add_mutually_exclusive_group(required=True) if command.either else parser
    for argument in command.arguments:
        place = choice if argument.name in command.either else parser
        place.add_argument(argument.name, help=argument.help, **argument.how)
    if command.acts:
        parser.add_argument("--reason", help="why, for the record of acts", choices=REASONS)
        parser.add_argument("--note", help=f"a note for the record, up to {NOTE_MAX} characters", metavar="TEXT")
    parser.add_argument("--json", action="store_true", help="write JSON, one object a line")
    if command.question is not None:
        parser.add_argument("--yes", action="store_true", help="don't ask")
    group = parser.add_argument_group("settings")
    group.add_argument(f"--{ENV_FILE}", metavar="FILE", help=ENV_FILE_HELP, default=argparse.SUPPRESS)
    for setting in TABLE:
        if setting.option in PLACES:  # a default would override the same option in front of the subcommand
            group.add_argument(
                f"--{setting.option}", metavar=setting.metavar, help=setting.description, default=argparse.SUPPRESS
            )


def execute(chosen: argparse.Namespace, options: Mapping[str, str], environ: Mapping[str, str]) -> NoReturn:
    """Run the subcommand that was chosen, and exit."""
    command: Command = chosen.command
    if command.question is not None and not chosen.yes:
        confirm(command.question(chosen))
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]

    async def work(reactor: Any) -> None:
        task = Task(
            chosen=chosen,
            options=options,
            environ=environ,
            reactor=reactor,
            output=Output(sys.stdout, json=chosen.json),
            progress=ProgressLine(sys.stderr, wanted=getattr(chosen, "progress", False)),
        )
        await command.run(task)

    run(work, log_format=options.get("log-format") or environ.get("SOLISYNC_LOG_FORMAT", "text"))
