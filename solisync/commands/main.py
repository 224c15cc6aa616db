"""The `solisync` command: the service in the foreground, and the commands of operators."""

import argparse
import os

from twisted.internet.base import ReactorBase

from .. import __version__
from ..process.clock import monotonic_reactor
from ..settings import ENV_FILE, ENV_FILE_HELP, ServingSettings, Settings, add_env_file
from ..settings_table import TABLE, without_option
from . import completion, reset_password, running, table
from .smoke import smoke


def main(arguments: list[str] | None = None) -> None:
    """The entry point of the `solisync` command."""
    parser = command_parser()
    chosen = parser.parse_args(arguments)
    add_env_file(os.environ, chosen.env_file)
    options = {
        setting.option: value
        for setting in TABLE
        if setting.option
        if (value := getattr(chosen, setting.option.replace("-", "_"))) is not None
    }
    if chosen.command is not None:
        if chosen.reset_password is not None or chosen.migrate or chosen.smoke is not None:
            parser.error("one command at a time")
        table.execute(chosen, options, os.environ)
    if chosen.smoke is not None:
        running.run(lambda reactor: smoke(chosen.smoke, reactor))
    if chosen.reset_password is not None:
        reset_password.reset(chosen.reset_password, Settings.from_environ(os.environ, options))
    elif chosen.migrate:
        settings = Settings.from_environ(os.environ, options)
        running.run(lambda reactor: _migrate(settings, reactor))
    else:
        _serve(ServingSettings.from_environ(os.environ, options), options)


def command_parser() -> argparse.ArgumentParser:
    """The command line parser of `solisync`."""
    parser = argparse.ArgumentParser(
        prog="solisync",
        description="The HTTP backend of a solitaire game. Without one of the commands below it serves until it is"
        " told to stop.",
        epilog="Settings come from the environment (the variable in brackets); options win. Serving needs JWT_SECRET"
        " or a file with it. Without DATABASE_URL, solisync runs a PostgreSQL of its own in the data directory."
        f" Without an option: {without_option()}.",
        allow_abbrev=False,  # or --jwt-secret would be taken, and its value for the name of a file
    )
    parser.add_argument("--version", action="version", version=f"solisync {__version__}")
    commands = parser.add_argument_group("commands").add_mutually_exclusive_group()
    commands.add_argument(
        "--reset-password",
        metavar="USERNAME",
        help="give a player a new password, read from standard input, and end all their sessions",
    )
    commands.add_argument("--migrate", action="store_true", help="bring the database's schema up to date")
    commands.add_argument("--smoke", metavar="URL", help="play one whole session against a running service")
    completion.add_option(commands)
    group = parser.add_argument_group("settings")
    group.add_argument(f"--{ENV_FILE}", metavar="FILE", help=ENV_FILE_HELP)
    for setting in (setting for setting in TABLE if setting.option):
        text = setting.description.replace("%", "%%")
        if setting.flag:
            group.add_argument(f"--{setting.option}", action="store_const", const=setting.flag, help=text)
        else:
            group.add_argument(f"--{setting.option}", metavar=setting.metavar, help=text)
    table.add_commands(parser)
    return parser


def _serve(settings: ServingSettings, options: dict[str, str]) -> None:
    from ..process.daemon import run
    from ..service import make_daemon

    reactor = monotonic_reactor()
    run(make_daemon(settings, reactor, os.environ, options), reactor, log_format=settings.log_format)


async def _migrate(settings: Settings, reactor: ReactorBase) -> str:
    applied = await running.migrate_database(settings, reactor)
    return "\n".join(f"applied {name}" for name in applied) or "the schema is up to date"


if __name__ == "__main__":
    main()
