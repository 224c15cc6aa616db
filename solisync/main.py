"""The `solisync` command: the service in the foreground, and what a person does around it."""

import argparse
import os
import sys

from twisted.internet.base import ReactorBase

from . import __version__, admin, reset_password
from .settings import Settings
from .settings_table import TABLE
from .smoke import smoke


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the `solisync` command."""
    chosen = _parser().parse_args(arguments)
    options = {
        setting.option: value
        for setting in TABLE
        if setting.option
        if (value := getattr(chosen, setting.option.replace("-", "_"))) is not None
    }
    if chosen.smoke is not None:
        admin.run(lambda reactor: smoke(chosen.smoke, reactor))
    serving = chosen.reset_password is None and not chosen.migrate
    settings = Settings.from_environ(os.environ, options, serving=serving)
    if chosen.reset_password is not None:
        reset_password.reset(chosen.reset_password, settings)
    elif chosen.migrate:
        admin.run(lambda reactor: _migrate(settings, reactor))
    else:
        _serve(settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="solisync",
        description="The HTTP backend of a solitaire game. Without one of the commands below it serves until it is"
        " told to stop.",
        epilog="Settings come from the environment (the variable in brackets); options win. Serving needs JWT_SECRET"
        " or a file with it. Without DATABASE_URL, solisync runs a PostgreSQL of its own in the data directory.",
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
    group = parser.add_argument_group("settings")
    for setting in (setting for setting in TABLE if setting.option):
        text = setting.description.replace("%", "%%")
        if setting.flag:
            group.add_argument(f"--{setting.option}", action="store_const", const=setting.flag, help=text)
        else:
            group.add_argument(f"--{setting.option}", metavar=setting.metavar, help=text)
    return parser


def _serve(settings: Settings) -> None:
    from twisted.internet import reactor
    from twisted.logger import globalLogBeginner, textFileLogObserver

    from .service import make_service

    globalLogBeginner.beginLoggingTo([textFileLogObserver(sys.stderr)], redirectStandardIO=False)
    service = make_service(settings, reactor)  # type: ignore[arg-type]
    service.privilegedStartService()
    service.startService()
    reactor.addSystemEventTrigger("before", "shutdown", service.stopService)
    reactor.run()
    if service.failure is not None:
        sys.exit(1)  # the log has said why


async def _migrate(settings: Settings, reactor: ReactorBase) -> str:
    applied = await admin.migrate_database(settings, reactor)
    return "\n".join(f"applied {name}" for name in applied) or "the schema is up to date"


if __name__ == "__main__":
    main()
