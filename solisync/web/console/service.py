"""Routes that show new content, the record of acts, and the state and settings of the service (docs/console.md)."""

from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal, get_args

from msgspec import Meta
from twisted.internet.base import ReactorBase

from ... import __version__
from ...acts import ACTS
from ...diagnosis import Finding, host
from ...diagnosis import database as database_checks
from ...postgres.database import Database
from ...postgres.transaction import Statements
from ...rules.administration import KEPT_DAYS
from ...rules.queries import choice, whole_number
from ...settings.setting import Setting
from ...settings.settings import ServingSettings
from ...settings.table import TABLE
from ...storage import acts, admins, checks, counts, daily_numbers, history, listed_replays, schema
from ...storage.acts import EXPORT
from ...storage.history import Change
from ..shared_cache import CoalescingCache
from .replays import page_of, read_wanted
from .route import OLDER, ExpensiveQueries, cut, get, one_text, page_size, row_number, user
from .shapes import (
    Admins,
    Findings,
    Migrations,
    Numbers,
    Overview,
    RecordedActs,
    Review,
    SettingValue,
    SettingValues,
)

FINDINGS_SECONDS = 30.0
SHOWN_DAYS = 30

Kind = Literal["names", "avatars", "players", "entries", "replays"]

_id, _event = attrgetter("id"), attrgetter("event")


@dataclass(frozen=True, kw_only=True)
class Overviews:
    """Shows the service as a whole: its state, new content, and the record of acts."""

    tag: ClassVar[str] = "service"

    database: Database
    reactor: ReactorBase
    now: Callable[[], datetime]
    began: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "began", self.reactor.seconds())

    @get("/service")
    async def service(self) -> Overview:
        """Show the version, the queues, and the sizes of tables."""
        return await self.database.run(self._service)

    async def _service(self, statements: Statements) -> Overview:
        return Overview(
            version=__version__,
            schema=await schema.latest(statements),
            up_seconds=int(self.reactor.seconds() - self.began),
            at=self.now(),
            rows=await counts.estimates(statements),
            queues=await checks.waiting(statements),
        )

    @get(
        "/numbers",
        summary="Show the numbers of the last days, oldest first",
        query={"days": Annotated[int, Meta(ge=1, le=KEPT_DAYS, description=f"{SHOWN_DAYS} by default")]},
    )
    async def numbers(self, days: list[str]) -> Numbers:
        """Show the numbers of the last days, today included."""
        wanted = whole_number(days, "days", 1, KEPT_DAYS, default=SHOWN_DAYS)
        return Numbers(await self.database.run(daily_numbers.of_days, wanted))

    @get(
        "/review",
        summary="List new content that other players see",
        query={"kind": Kind, **OLDER},
    )
    async def review(self, kind: list[str], before: list[str], limit: list[str]) -> Review:
        """Return a page of new content of one kind."""
        match choice(kind, "kind", get_args(Kind)):
            case "avatars":
                return await self.database.run(_changed, "avatar changed", row_number(before), page_size(limit))
            case "players":
                wanted, size = {"before": row_number(before)}, page_size(limit)
                registered = await self.database.run(history.registered, most=size + 1, **wanted)
                players, following = cut(registered, size, _event)
                return Review(players=players, next=following)
            case "entries":
                return Review(entries=await self.database.run(listed_replays.unproved))
            case "replays":
                newest = await self.database.run(page_of, read_wanted([], [], before, limit))
                return Review(replays=newest.replays, next=newest.next)
        return await self.database.run(_changed, "opted in", row_number(before), page_size(limit))

    @get("/acts", summary="List the acts of operators", query={"act": str, "actor": str, "player": str, **OLDER})
    async def acts(
        self, act: list[str], actor: list[str], player: list[str], before: list[str], limit: list[str]
    ) -> RecordedActs:
        """Return a page of the record of acts."""
        size, names = page_size(limit), [*(each.name for each in ACTS), EXPORT]
        wanted: dict[str, Any] = {
            "act": choice(act, "act", names),
            "actor": one_text(actor, "actor") or None,
            "user_id": user(player, "player"),
            "before": row_number(before),
        }
        return RecordedActs(*cut(await self.database.run(acts.page, most=size + 1, **wanted), size, _id))

    @get("/admins")
    async def admins(self) -> Admins:
        """List all admins."""
        return Admins(await self.database.run(admins.listed))


async def _changed(statements: Statements, event: Change, before: int, size: int) -> Review:
    """Return a page of the players with this event.

    A page with few matches has a next page if the search stopped at its limit.
    """
    found = await history.changed(statements, event, most=size + 1, before=before)
    end = await history.end_of_changes(statements, event, before) if len(found) <= size else None
    profiles, following = cut(found, size, _event, end)
    return Review(profiles=profiles, next=following)


class Inspections:
    """Checks the service as `solisync doctor` does, except ports and other variables of the environment."""

    tag: ClassVar[str] = "service"

    def __init__(
        self, *, settings: ServingSettings, database: Database, reactor: ReactorBase, expensive: ExpensiveQueries
    ) -> None:
        self._settings = settings
        self._database = database
        self._reactor = reactor
        self._found = CoalescingCache(lambda: expensive.run(self._examine), reactor=reactor, seconds=FINDINGS_SECONDS)

    @get("/service/findings", summary="List the findings of the checks, at most 30 s old")
    async def findings(self) -> Findings:
        """Return the findings of the checks, at most FINDINGS_SECONDS old."""
        return Findings(await self._found.get())

    async def _examine(self) -> list[Finding]:
        settings = self._settings
        found = [host.secret("JWT_SECRET", settings.jwt_secret)]
        if settings.jwt_secret_previous is not None:
            found.append(host.secret("JWT_SECRET_PREVIOUS", settings.jwt_secret_previous))
        for check in (host.proxies, host.auth_limit, host.streams, host.console):
            found += check(settings)
        return found + await database_checks.examine(settings, self._reactor, self._database.connection())

    @get("/service/migrations", summary="List the migrations that the database has")
    async def migrations(self) -> Migrations:
        """Return the migrations that the database has."""
        return Migrations(await self._database.run(schema.applied))

    @get("/service/settings", summary="List the settings, without secrets")
    async def settings(self) -> SettingValues:
        """Return all settings; for secrets, only whether they are set."""
        rows = [next(same) for _, same in groupby(TABLE, attrgetter("field"))]
        return SettingValues([_shown(row, getattr(self._settings, row.field)) for row in rows])


def _shown(row: Setting, value: Any) -> SettingValue:
    if value is None or (isinstance(value, Sized) and len(value) == 0):
        return SettingValue(row.variable, False, None)
    return SettingValue(row.variable, True, row.show(value) if row.show else None)
