"""`solisync-reset-password NAME` and `solisync --reset-password NAME`.

The commands read the new password from standard input, so that it appears in no argument, variable or log. See
docs/operations.md "A player forgot their password".
"""

import argparse
import getpass
import os
import sys

from twisted.internet.base import ReactorBase

from .. import __version__
from ..access.passwords import Passwords
from ..errors import BadRequest
from ..events.notices import SessionsEnded, command_notices
from ..postgres.transaction import Transaction
from ..process.audit import Happened, audit
from ..process.entry_point import open_missing
from ..rules.accounts import check_new_password, username_to_look_up
from ..settings.settings import ENV_FILE, ENV_FILE_HELP, Settings, add_env_file
from ..settings.table import TABLE
from ..storage.players import accounts, history
from ..storage.players.history import Occurrence
from .running import database, run
from .task import no_such_player, only_line


def main(arguments: list[str] | None = None) -> None:
    """The entry point of the `solisync-reset-password` command."""
    open_missing()
    parser = argparse.ArgumentParser(
        prog="solisync-reset-password",
        description="Set a new password for a player, the only line of standard input, and end all their sessions.",
        epilog="Uses the service's database, which may be in use: the one in DATABASE_URL, else the embedded one in the"
        " data directory.",
    )
    parser.add_argument("username", help="the player whose password to replace")
    parser.add_argument("--version", action="version", version=f"solisync {__version__}")
    places = [setting for setting in TABLE if setting.option in ("data-dir", "database-url-file")]
    for setting in places:
        parser.add_argument(f"--{setting.option}", metavar=setting.metavar, help=setting.description)
    parser.add_argument(f"--{ENV_FILE}", metavar="FILE", help=ENV_FILE_HELP)
    chosen = vars(parser.parse_args(arguments))
    add_env_file(os.environ, chosen["env_file"])
    options = {setting.option: chosen[setting.option.replace("-", "_")] for setting in places}
    reset(chosen["username"], Settings.from_environ(os.environ, options))


def reset(username: str, settings: Settings) -> None:
    """Read the new password, replace the old one, print one line, and exit."""
    try:
        password = check_new_password(_read_password())  # before the reactor runs, so that Ctrl-C works immediately
    except BadRequest as error:
        sys.exit(str(error))
    except (KeyboardInterrupt, EOFError):
        sys.exit("nothing was changed")
    run(lambda reactor: _reset(username, password, settings, reactor), log_format=settings.log_format)


async def _reset(username: str, password: bytes, settings: Settings, reactor: ReactorBase) -> str:
    hashing = Passwords(reactor=reactor, threads=reactor.getThreadPool(), at_once=1)
    async with database(settings, reactor) as opened:
        name = username_to_look_up(username)
        if name is None or not await opened.run(accounts.is_taken, name):
            raise no_such_player(username)
        password_hash = await hashing.hash(password)
        user_id = await opened.transact(_replace, name, password_hash)
        if user_id is None:
            raise no_such_player(username)
        audit("password reset", user_id=user_id)
        command_notices(opened)(SessionsEnded(user_id))
    return f"replaced the password of '{username}' and ended all sessions"


async def _replace(transaction: Transaction, name: str, password_hash: str) -> str | None:
    user_id = await accounts.reset_password(transaction, name, password_hash)
    if user_id is not None:
        await history.store(transaction, [Occurrence(Happened("password reset", user_id, "by an operator", None))])
    return user_id


def _read_password() -> str:
    try:
        if sys.stdin.isatty():
            password = getpass.getpass("New password: ")
            if getpass.getpass("Repeat new password: ") != password:
                sys.exit("the passwords differ")
            password.encode()
            return password
        return only_line().decode("utf-8-sig")
    except UnicodeError:
        sys.exit("the password is not UTF-8")
