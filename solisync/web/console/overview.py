"""Routes that show what is new, what was done, and how the service is (docs/console.md "The interface")."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from twisted.internet.base import ReactorBase

from ... import __version__
from ...acts.table import ACTS
from ...postgres.database import Database
from ...postgres.transaction import Statements
from ...storage import acts, admins, checks, counts, history, listed_replays, schema
from ...storage.acts import EXPORT
from .parameters import chosen, number, one_text
from .players import SHOWN
from .shapes import Admins, Overview, RecordedActs, Review


@dataclass(frozen=True, kw_only=True)
class Overviews:
    """Shows what concerns no single player."""

    database: Database
    reactor: ReactorBase
    now: Callable[[], datetime]
    began: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "began", self.reactor.seconds())

    async def service(self) -> Overview:
        """The version, the queues, and about how much there is."""
        return await self.database.autocommit(self._service)

    async def _service(self, statements: Statements) -> Overview:
        return Overview(
            version=__version__,
            schema=await schema.latest(statements),
            up_seconds=int(self.reactor.seconds() - self.began),
            at=self.now(),
            rows=await counts.estimates(statements),
            queues=await checks.waiting(statements),
        )

    async def review(self, kind: list[str]) -> Review:
        """What players have lately done that others see."""
        match chosen(kind, "kind", ("names", "avatars", "players", "entries", "replays")):
            case "avatars":
                return Review(profiles=await self.database.autocommit(history.changed, "avatar changed", most=SHOWN))
            case "players":
                return Review(players=await self.database.autocommit(history.registered, most=SHOWN))
            case "entries":
                return Review(entries=await self.database.autocommit(listed_replays.unproved))
            case "replays":
                newest = await self.database.autocommit(listed_replays.newest, verdict=None, held=False, most=SHOWN)
                return Review(replays=newest)
        return Review(profiles=await self.database.autocommit(history.changed, "opted in", most=SHOWN))

    async def acts(self, act: list[str], actor: list[str], before: list[str]) -> RecordedActs:
        """The record, page by page."""
        names = [*(each.name for each in ACTS), EXPORT]
        wanted = {"act": chosen(act, "act", names), "actor": one_text(actor, "actor") or None}
        page = await self.database.autocommit(
            lambda statements: acts.page(statements, before=number(before, "before"), **wanted)
        )
        more = len(page) > acts.SHOWN
        return RecordedActs(page[: acts.SHOWN], page[acts.SHOWN - 1].id if more else None)

    async def admins(self) -> Admins:
        """Everybody who may sign in."""
        return Admins(await self.database.autocommit(admins.listed))
