"""The context of one run of a subcommand: arguments, settings, database and output."""

import os
import pwd
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from twisted.internet.base import ReactorBase

from ..acts.act import Act, Acting, Done, Why
from ..errors import NotFound
from ..events.notices import command_notices
from ..postgres.database import Database
from ..postgres.transaction import Statements
from ..rules.accounts import username_to_look_up
from ..rules.shapes import canonical_uuid
from ..settings.settings import Settings
from ..storage import accounts, guests
from ..storage.accounts import Player
from ..storage.acts import Actor
from . import running
from .output import Output, ProgressLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The parsed arguments in `chosen`, the sources of the settings, and the output."""

    chosen: Namespace
    options: Mapping[str, str]
    environ: Mapping[str, str]
    reactor: ReactorBase
    output: Output
    progress: ProgressLine

    @property
    def settings(self) -> Settings:
        """The settings of the database and the log; raises SettingsError."""
        return Settings.from_environ(self.environ, self.options)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Statements]:
        """A connection for reading as long as it takes; PostgreSQL commits each statement by itself."""
        async with running.connection(self.settings, self.reactor) as connection:
            statements = Statements(connection)
            await running.check_schema(statements)
            yield statements

    def database(self, *, create: bool = False) -> AbstractAsyncContextManager[Database]:
        """A Database, as in the service: for short transactions, which may be run again.

        With `create`, an embedded database is made if there is none, and the schema brought up to date.
        """
        return running.database(self.settings, self.reactor, migrating=create, create=create)

    @asynccontextmanager
    async def acting(self) -> AsyncIterator[Acting]:
        """Performs acts in the name of the user who runs the command, with its reason and note."""
        why = Why(self.chosen.reason, self.chosen.note)
        async with self.database() as database:
            yield Acting(database=database, publish=command_notices(database), by=self.actor, why=why)

    async def perform(self, act: Act, **given: Any) -> tuple[Player, Done]:
        """Perform an act on the player of the argument `user`; returns the player as it was before, and the result."""
        async with self.acting() as acting:
            found = await acting.database.run(player, self.chosen.user)
            return found, await acting.perform(act, found.id, **given)

    async def warn_of_guest(self, database: Database, found: Player) -> None:
        """Print a warning before the sessions of a guest end."""
        if await database.run(guests.is_guest, found.id):
            self.progress.remark(f"'{found.username}' is a guest: it can't log in again, and will be deleted")

    @property
    def actor(self) -> Actor:
        """Who runs the command, for the record of acts."""
        return Actor("shell", self._login_name())

    def _login_name(self) -> str:
        """Who runs the command: before sudo, if that has run it."""
        try:
            return self.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # as in some containers
            return str(os.getuid())


def no_such_player(text: str) -> NotFound:
    """The error for a username or id that nobody has."""
    return NotFound("user_not_found", f"user '{text}' not found")


async def player(statements: Statements, text: str) -> Player:
    """The player with this username or, if there are hyphens in it, this id; raises NotFound."""
    user_id = canonical_uuid(text) if "-" in text else None
    found = await accounts.find(statements, user_id, None if user_id else username_to_look_up(text))
    if found is None:
        raise no_such_player(text)
    return found
