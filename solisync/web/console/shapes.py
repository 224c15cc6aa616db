"""The answers of the console's reading routes. Players and replays equal the output of commands with --json."""

from datetime import datetime

from msgspec import Struct

from ...acts.record import ListedAct
from ...diagnosis import Finding
from ...players.facts import HistoryEntry
from ...players.finding import Next
from ...rules.administration import Admin, PageLink
from ...rules.export import ExportedGame
from ...rules.sessions import Session
from ...storage.housekeeping import LastRun
from ...storage.operators.counts import RowEstimates
from ...storage.operators.daily_numbers import DayNumbers
from ...storage.players.history import ChangedProfile, RegisteredPlayer
from ...storage.replays.checks import QueueLengths
from ...storage.replays.listed_replays import FoundReplay, SameGame, UnprovedEntry
from ...storage.replays.verdicts import CheckedReplay
from ...storage.schema import AppliedMigration


class PlayerHistory(Struct, frozen=True):
    """A page of a player's history, newest first."""

    history: list[HistoryEntry]
    next: Next


class CountedGames(Struct, frozen=True):
    """A page of the games that a player has sent by their ids, last counted first."""

    games: list[ExportedGame]
    next: Next


class PlayerSessions(Struct, frozen=True):
    """All live sessions of a player, last used first."""

    sessions: list[Session]


class FoundReplays(Struct, frozen=True):
    """A page of replays, newest first; even a short or empty page may have a next one."""

    replays: list[FoundReplay]
    next: Next


class ReplayFacts(CheckedReplay, frozen=True, kw_only=True):
    """A replay with its verdict, its place in a queue, and equal games of other players.

    `finding` says in words how a refuted or undecided replay differs from its claim.
    """

    finding: str | None
    page: PageLink
    same_game: list[SameGame]


class Review(Struct, frozen=True):
    """A page of new content of the requested kind; the other lists are empty. `entries` has one page."""

    profiles: list[ChangedProfile] = []
    players: list[RegisteredPlayer] = []
    entries: list[UnprovedEntry] = []
    replays: list[FoundReplay] = []
    next: Next = None


class Overview(Struct, frozen=True, kw_only=True):
    """The service and its database. `rows` are estimates, and `queues` are counted up to 10,000.

    What is old is deleted by the retention clock. `jobs` are the jobs of housekeeping.
    """

    version: str
    schema: int
    up_seconds: int
    at: datetime
    rows: RowEstimates
    queues: QueueLengths
    retention_behind_seconds: int
    jobs: list[LastRun]


class Numbers(Struct, frozen=True):
    """The numbers of days, oldest first, today included."""

    days: list[DayNumbers]


class Findings(Struct, frozen=True):
    """The findings of the checks of `solisync doctor`."""

    findings: list[Finding]


class Migrations(Struct, frozen=True):
    """The migrations that the database has, newest first."""

    migrations: list[AppliedMigration]


class SettingValue(Struct, frozen=True):
    """A setting; `value` is null if it is secret or unset, and only the server's part of a DSN."""

    variable: str
    set: bool
    value: str | None


class SettingValues(Struct, frozen=True):
    """The settings of the process that answers."""

    settings: list[SettingValue]


class RecordedActs(Struct, frozen=True):
    """A page of acts, newest first."""

    acts: list[ListedAct]
    next: Next


class Admins(Struct, frozen=True):
    """All admins."""

    admins: list[Admin]
