"""The context of one run of a subcommand: arguments, settings, database and output."""

from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from twisted.internet.base import ReactorBase

from ..errors import NotFound
from ..postgres.connection import Connection
from ..postgres.database import Database
from ..postgres.transaction import Statements
from ..rules.accounts import username_to_look_up
from ..rules.ids import canonical_uuid
from ..settings import Settings
from ..storage import accounts
from ..storage.accounts import Player
from .output import Output, Progress
from .running import check_schema, with_connection, with_database

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The parsed arguments in `chosen`, the sources of the settings, and the output."""

    chosen: Namespace
    options: Mapping[str, str]
    environ: Mapping[str, str]
    reactor: ReactorBase
    output: Output
    progress: Progress

    @property
    def settings(self) -> Settings:
        """The settings of the database and the log; raises SettingsError."""
        return Settings.from_environ(self.environ, self.options)

    async def reading(self, work: Callable[[Statements], Awaitable[T]]) -> T:
        """Call `work` to read from the database for as long as it takes, each statement in a transaction of its own."""

        async def checked(connection: Connection) -> T:
            await check_schema(connection)
            return await work(Statements(connection))

        return await with_connection(self.settings, self.reactor, checked)

    async def writing(self, work: Callable[[Database], Awaitable[T]], *, create: bool = False) -> T:
        """Call `work` with a Database, as in the service: with short transactions, which may be run again.

        With `create`, an embedded database is made if there is none, and the schema brought up to date.
        """
        return await with_database(self.settings, self.reactor, work, migrating=create, create=create)


def no_such_player(text: str) -> NotFound:
    """The error for a username or id that nobody has."""
    return NotFound("user_not_found", f"user '{text}' not found")


async def player(transaction: Statements, text: str) -> Player:
    """The player with this username or, if there are hyphens in it, this id; raises NotFound."""
    user_id = canonical_uuid(text) if "-" in text else None
    found = await accounts.find(transaction, user_id, None if user_id else username_to_look_up(text))
    if found is None:
        raise no_such_player(text)
    return found
