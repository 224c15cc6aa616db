"""Routes that show what `solisync doctor` finds, the migrations, and the settings (docs/console.md)."""

from collections.abc import Sized
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar

from twisted.internet.base import ReactorBase

from ...diagnosis import Finding, host
from ...diagnosis import database as database_checks
from ...postgres.database import Database
from ...settings.setting import Setting
from ...settings.settings import ServingSettings
from ...settings.table import TABLE
from ...storage import schema
from ..handler_limits import ExpensiveQueries
from ..shared_cache import CoalescingCache
from .declaring import get
from .shapes import Findings, Migrations, SettingValue, SettingValues

FINDINGS_SECONDS = 30.0


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
