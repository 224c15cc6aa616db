"""What the console's routes answer that only read; players and replays are as commands show them with --json."""

from datetime import datetime

from msgspec import Struct

from ...diagnosis import Finding
from ...players.facts import HistoryEntry
from ...rules.administration import Admin
from ...rules.sessions import Session
from ...storage.acts import RecordedAct
from ...storage.checks import QueueLengths
from ...storage.counts import RowEstimates
from ...storage.history import ChangedProfile, RegisteredPlayer, Visitor
from ...storage.listed_replays import FoundReplay, SameGame, UnprovedEntry
from ...storage.players import FoundPlayer
from ...storage.schema import AppliedMigration
from ...storage.verdicts import CheckedReplay
from .pages_of_lists import Next


class FoundPlayers(Struct, frozen=True):
    """A page of players, by name, or those that operators keep out, the last first.

    By an address, they are `visitors`: players to whom something has happened from there, the last first.
    """

    players: list[FoundPlayer]
    next: Next
    visitors: list[Visitor] = []


class PlayerHistory(Struct, frozen=True):
    """A page of it, the last first."""

    history: list[HistoryEntry]
    next: Next


class PlayerSessions(Struct, frozen=True):
    """The live sessions of a player, all of them, last used first."""

    sessions: list[Session]


class FoundReplays(Struct, frozen=True):
    """A page of replays, the newest first; there may be a next page although this one is short, or empty."""

    replays: list[FoundReplay]
    next: Next


class ReplayFacts(CheckedReplay, frozen=True, kw_only=True):
    """A replay with its verdict, where it waits for the next one, and who else has played the same game."""

    same_game: list[SameGame]


class Review(Struct, frozen=True):
    """A page of what is new, of the kind that was asked for; the others are empty. Of `entries` there is one page."""

    profiles: list[ChangedProfile] = []
    players: list[RegisteredPlayer] = []
    entries: list[UnprovedEntry] = []
    replays: list[FoundReplay] = []
    next: Next = None


class Overview(Struct, frozen=True, kw_only=True):
    """The service and its database. `rows` are about right, `queues` are counted to 10,000."""

    version: str
    schema: int
    up_seconds: int
    at: datetime
    rows: RowEstimates
    queues: QueueLengths


class Findings(Struct, frozen=True):
    """What the checks of `solisync doctor` have found: `level` is ok, note or wrong."""

    findings: list[Finding]


class Migrations(Struct, frozen=True):
    """The migrations that the database has, the last first."""

    migrations: list[AppliedMigration]


class SettingValue(Struct, frozen=True):
    """A setting; `value` is null where it is a secret or not set, and of a DSN the server alone."""

    variable: str
    set: bool
    value: str | None


class SettingValues(Struct, frozen=True):
    """The settings of the process that answers."""

    settings: list[SettingValue]


class RecordedActs(Struct, frozen=True):
    """A page of acts, the last first."""

    acts: list[RecordedAct]
    next: Next


class Admins(Struct, frozen=True):
    """Everybody who may sign in."""

    admins: list[Admin]
