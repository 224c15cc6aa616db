"""The context of one run of a subcommand: arguments, settings, database, input and output."""

import os
import pwd
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from twisted.internet.base import ReactorBase

from ..acts.act import Act, Acting, Done, Why
from ..errors import FatalError, NotFound
from ..events.notices import command_notices
from ..players.finding import named
from ..postgres.database import Database
from ..postgres.transaction import Statements
from ..settings.settings import Settings
from ..settings.values import SECRET_MIN_BYTES, without_line_end
from ..storage.operators.acts import Actor
from ..storage.players import guests
from ..storage.players.accounts import Player
from . import running
from .output import Output, ProgressLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The parsed arguments (`chosen`), the sources of the settings, and the output."""

    chosen: Namespace
    options: Mapping[str, str]
    environ: Mapping[str, str]
    reactor: ReactorBase
    output: Output
    progress: ProgressLine

    @property
    def settings(self) -> Settings:
        """The settings of the database and the log; raises SettingsError for invalid ones."""
        return Settings.from_environ(self.environ, self.options)

    @property
    def has_secret(self) -> bool:
        """Whether the signing secret is set, as it is for the service."""
        given = self.environ.get("JWT_SECRET") or self.environ.get("JWT_SECRET_FILE")
        return bool(given or "jwt-secret-file" in self.options)

    def with_some_secret(self) -> dict[str, str]:
        """Return the environment; if it lacks a signing secret, as an operator's shell does, add a placeholder."""
        return {**self.environ} | ({} if self.has_secret else {"JWT_SECRET": "-" * SECRET_MIN_BYTES})

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Statements]:
        """Yield a connection for reading, without a time limit; PostgreSQL commits each statement by itself."""
        async with running.connection(self.settings, self.reactor) as connection:
            statements = Statements(connection)
            await running.check_schema(statements)
            yield statements

    def database(self, *, create: bool = False) -> AbstractAsyncContextManager[Database]:
        """Return a Database like the service's, for short transactions, which may be retried; see running.database."""
        return running.database(self.settings, self.reactor, create=create)

    @asynccontextmanager
    async def acting(self) -> AsyncIterator[Acting]:
        """Yield an Acting in the name of the operator who runs the command, with the command's reason and note."""
        why = Why(self.chosen.reason, self.chosen.note)
        async with self.database() as database:
            yield Acting(database=database, publish=command_notices(database), by=self.actor, why=why, settling=True)

    async def perform(self, act: Act, **given: Any) -> tuple[Player, Done]:
        """Perform an act on the player in the argument `user`; returns the player before the act, and the result."""
        async with self.acting() as acting:
            found = await acting.database.run(player, self.chosen.user)
            return found, await acting.perform(act, found.id, **given)

    async def warn_of_guest(self, database: Database, found: Player) -> None:
        """Print a warning if the player is a guest without a key, whose sessions are about to end."""
        if await database.run(guests.is_keyless, found.id):
            self.progress.remark(f"'{found.username}' is a guest without a key, which can't sign in again")

    @property
    def actor(self) -> Actor:
        """The operator who runs the command, for the record of acts."""
        return Actor("shell", self._login_name())

    def _login_name(self) -> str:
        """Return the name of the user who runs the command; under sudo, the user who ran sudo."""
        try:
            return self.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # the user has no name, as in some containers
            return str(os.getuid())


def no_such_player(text: str) -> NotFound:
    """Return the error for a username or id that no player has."""
    return NotFound("player_not_found", f"user '{text}' not found")


async def player(statements: Statements, text: str) -> Player:
    """Return the player with this username or, if the text has hyphens, this id; raises NotFound."""
    found = await named(statements, text)
    if found is None:
        raise no_such_player(text)
    return found


LINE_BYTES = 8_192  # more than any password, of standard input


def only_line() -> bytes:
    """Return the only line of standard input, without its end.

    A pipe may stay open after the line, so this doesn't wait for more lines, but refuses those that came with it. A
    longer line is cut, which no password may be.
    """
    given = b""
    while b"\n" not in given and len(given) < LINE_BYTES and (part := os.read(sys.stdin.fileno(), 4096)):
        given += part
    line = without_line_end(given)
    if b"\n" in line:
        raise FatalError("solisync: standard input has several lines: give it the password alone")
    return line
