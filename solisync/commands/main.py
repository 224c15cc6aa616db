"""The `solisync` command: the service in the foreground, and the commands of operators."""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import NoReturn

from twisted.internet.base import ReactorBase

from .. import __version__
from ..process.entry_point import monotonic_reactor, open_missing
from ..settings.settings import ENV_FILE, ENV_FILE_HELP, ServingSettings, Settings, add_env_file, suggestion
from ..settings.table import TABLE, without_option
from . import parsers
from .command import sentence


def main(arguments: list[str] | None = None) -> None:
    """The entry point of the `solisync` command."""
    open_missing()
    parser = command_parser()
    words = sys.argv[1:] if arguments is None else arguments
    check_options(parser, words)
    chosen = parser.parse_args(words)
    add_env_file(os.environ, chosen.env_file)
    options = {
        setting.option: value
        for setting in TABLE
        if setting.option
        if (value := getattr(chosen, setting.option.replace("-", "_"))) is not None
    }
    commands = (chosen.command, chosen.reset_password, chosen.migrate, chosen.smoke, chosen.serve, chosen.help_on)
    if sum(command is not None for command in commands) > 1:
        parser.error("give only one command")
    if chosen.help_on is not None:
        _help(parser, chosen.help_on)
    if chosen.command is not None:
        parsers.execute(chosen, options, os.environ)
    if chosen.smoke is not None:
        _smoke(chosen.smoke)
    if chosen.reset_password is not None:
        from .reset_password import reset

        reset(chosen.reset_password, Settings.from_environ(os.environ, options))
    elif chosen.migrate:
        _migrate(Settings.from_environ(os.environ, options))
    else:
        _serve(ServingSettings.from_environ(os.environ, options), options)


@cache
def command_parser() -> argparse.ArgumentParser:
    """The command line parser of `solisync`."""
    parser = argparse.ArgumentParser(
        prog="solisync",
        description="The HTTP backend of a solitaire game. It serves until stopped, unless you give one of the commands"
        " below.",
        epilog="Settings come from environment variables (in brackets); options override them. Serving needs JWT_SECRET"
        " or JWT_SECRET_FILE. Without DATABASE_URL, solisync runs its own PostgreSQL in the data directory."
        f" Settings without an option: {without_option()}.",
        allow_abbrev=False,  # otherwise --jwt-secret SECRET would mean --jwt-secret-file SECRET
    )
    parser.add_argument("--version", action="version", version=f"solisync {__version__}")
    commands = parser.add_argument_group("commands").add_mutually_exclusive_group()
    commands.add_argument(
        "--reset-password",
        metavar="USERNAME",
        help="set a new password for a player, read from standard input, and end all their sessions",
    )
    commands.add_argument("--migrate", action="store_const", const=True, help="update the schema of the database")
    commands.add_argument("--smoke", metavar="URL", help="check a running service by playing one whole session")
    parsers.add_completion(commands)
    _add_settings(parser, default=None)
    under = parsers.add_commands(parser)
    text = "serve until stopped (the default)"
    serve = under.add_parser("serve", help=text, description=sentence(text), allow_abbrev=False)
    serve.set_defaults(serve=True)
    _add_settings(serve, default=argparse.SUPPRESS)  # a default would override the same option before `serve`
    help_on = under.add_parser("help", help="show this help, or the help of a command", allow_abbrev=False)
    help_on.add_argument("help_on", nargs="*", metavar="COMMAND", help="the command to describe")
    parser.set_defaults(serve=None, help_on=None)
    return parser


def _add_settings(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    group = parser.add_argument_group("settings")
    group.add_argument(f"--{ENV_FILE}", metavar="FILE", help=ENV_FILE_HELP, default=default)
    for setting in (setting for setting in TABLE if setting.option):
        text = setting.description.replace("%", "%%")
        name = f"--{setting.option}"
        if setting.flag:
            group.add_argument(name, action="store_const", const=setting.flag, help=text, default=default)
        else:
            group.add_argument(name, metavar=setting.metavar, help=text, default=default)


def check_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Exit with the usage if an option or a command doesn't exist, and suggest a similar one.

    Without this check, argparse would complain about the next word: it would take the 3 of `--wrkers 3` for a command.
    """
    rest = iter(words)
    for word in rest:
        if word == "--":
            return
        under = parsers.subparsers(parser)
        if word in under:
            parser = under[word]
            continue
        name, equals, _ = word.partition("=")
        action = parser._option_string_actions.get(name)
        if action is not None and action.nargs is None and not equals:
            next(rest, None)  # the option's value, which may look like a command
        if action is None and name.startswith("-") and name != "-":
            parser.error(f"there is no option {name}{suggestion(name, parser._option_string_actions)}")
        if under and not word.startswith("-"):
            _refuse_command(parser, word)


def _help(parser: argparse.ArgumentParser, words: Sequence[str]) -> NoReturn:
    for word in words:
        under = parsers.subparsers(parser)
        if word not in under:
            _refuse_command(parser, word)
        parser = under[word]
    parser.print_help()
    parser.exit()


def _refuse_command(parser: argparse.ArgumentParser, word: str) -> NoReturn:
    parser.error(f"there is no command {word!r}{suggestion(word, parsers.subparsers(parser))}")


def _serve(settings: ServingSettings, options: dict[str, str]) -> None:
    from ..process.daemon import run
    from ..service import make_daemon

    reactor = monotonic_reactor()
    run(
        make_daemon(settings, reactor, os.environ, options),
        reactor,
        log_format=settings.log_format,
        log_level=settings.log_level,
    )


def _migrate(settings: Settings) -> NoReturn:
    from .running import migrate_database, run

    async def work(reactor: ReactorBase) -> str:
        applied = await migrate_database(settings, reactor)
        return "\n".join(f"applied {name}" for name in applied) or "the schema is up to date"

    run(work)


def _smoke(url: str) -> NoReturn:
    from .running import run
    from .smoke import smoke

    run(lambda reactor: smoke(url, reactor))
