"""Routes that show the state of the service, new content, and the record of acts (docs/console.md)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from twisted.internet.base import ReactorBase

from ... import __version__
from ...access.rate_limit import ADMIN
from ...acts import NAMES
from ...acts.record import listed
from ...errors import BadRequest
from ...housekeeping import NAMES as JOB_NAMES
from ...players.finding import cut, named
from ...postgres.database import Database
from ...postgres.transaction import Statements
from ...rules.administration import KEPT_DAYS, Acted, AdminSession, Kind, Reason, SeenBody
from ...rules.queries import moment
from ...storage import housekeeping, retention, schema
from ...storage.operators import acts, admins, counts, daily_numbers, review
from ...storage.operators.acts import ActFilter
from ...storage.paging import END, FIRST_TIME
from ...storage.players import history
from ...storage.players.history import ChangedProfile
from ...storage.replays import checks, listed_replays
from .declaring import Older, Text, get, put, row_number
from .replays import ReplaysQuery, page_of
from .shapes import (
    Admins,
    Numbers,
    Overview,
    RecordedActs,
    Review,
)

SHOWN_DAYS = 30

ActName = Literal[NAMES]  # type: ignore[valid-type]
Moment = Annotated[Text, Meta(description="a date or a time", examples=["2026-11-20", "2026-11-20T12:00:00Z"])]
EVENTS: dict[str, Any] = {"names": "opted in", "avatars": "avatar changed", "players": "register"}

_id, _event = attrgetter("id"), attrgetter("event")


class NumbersQuery(Struct, frozen=True):
    """The days whose numbers to show."""

    days: Annotated[int, Meta(ge=1, le=KEPT_DAYS, description=f"{SHOWN_DAYS} by default")] = SHOWN_DAYS


class ReviewQuery(Older, frozen=True):
    """The kind of new content, with the items that an admin has marked as seen or without, and the page to return."""

    kind: Kind = "names"
    seen: Literal["all"] | None = None


class ActsQuery(Older, frozen=True, rename={"from_": "from"}):
    """The filter of the record of acts, and the page to return."""

    act: ActName | None = None
    actor: Annotated[Text, Meta(description="such as `shell:ann`", examples=["shell:ann"])] | None = None
    admin: Annotated[Text, Meta(description="the name of an admin", examples=["ann"])] | None = None
    player: Annotated[Text, Meta(description="username or id")] | None = None
    reason: Reason | None = None
    from_: Moment | None = None
    to: Moment | None = None


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
            retention_behind_seconds=await retention.behind(statements),
            jobs=await housekeeping.last_runs(statements, JOB_NAMES),
        )

    @get("/numbers", summary="Show the numbers of the last days, oldest first")
    async def numbers(self, query: NumbersQuery) -> Numbers:
        """Show the numbers of the last days, today included."""
        return Numbers(await self.database.run(daily_numbers.of_days, query.days))

    @get("/review", summary="List new content that other players see")
    async def review(self, query: ReviewQuery) -> Review:
        """Return a page of new content of one kind, without the items that an admin has marked as seen."""
        run, everything = self.database.run, query.seen is not None
        match query.kind:
            case "entries":
                return Review(entries=await run(listed_replays.unproved, everything))
            case "replays":
                wanted = ReplaysQuery(before=query.before, limit=query.limit)
                newest = await run(page_of, wanted, seen=everything)
                return Review(replays=newest.replays, next=newest.next)
        return await run(_changed, query.kind, row_number(query.before), query.limit, everything)

    @put("/review/seen", name="see", summary="Mark items of the review as seen, or as new again", limit=ADMIN)
    async def see(self, body: SeenBody, admin: AdminSession) -> Acted:
        """Mark up to MANY items of a kind. Items that don't exist are ignored."""
        if body.seen:
            return Acted(changed=await self.database.run(review.see, body.kind, body.texts, admin=admin.admin))
        return Acted(changed=await self.database.run(review.forget, body.kind, body.texts))

    @get("/acts", summary="List the acts of operators")
    async def acts(self, query: ActsQuery) -> RecordedActs:
        """Return a page of the record of acts, from a time until before another."""
        size, place = query.limit, row_number(query.before)
        chosen = ActFilter(
            act=query.act,
            actor=(query.actor or "").strip() or None,
            reason=query.reason,
            since=moment(query.from_, "from") or FIRST_TIME,
            until=moment(query.to, "to") or END.time,
        )
        if query.admin is not None:
            chosen = replace(chosen, actor=f"admin:{await self._known_admin(query.admin.strip())}")
        if query.player is not None:
            chosen = replace(chosen, user_id=await self._known_player(query.player.strip()))
        found = await self.database.run(acts.page, chosen, most=size + 1, before=place)
        shown, following = cut(found, size, _id)
        return RecordedActs([listed(each, self.now()) for each in shown], following)

    async def _known_admin(self, name: str) -> str:
        if not await self.database.run(acts.knows_admin, name):
            raise BadRequest("bad_query", "admin must be the name of an admin")
        return name

    async def _known_player(self, text: str) -> str:
        found = await self.database.run(named, text)
        if found is None:
            raise BadRequest("bad_query", "player must be the username or the id of a player")
        return found.id

    @get("/admins")
    async def admins(self) -> Admins:
        """List all admins."""
        return Admins(await self.database.run(admins.listed))


async def _changed(statements: Statements, kind: str, before: int, size: int, seen: bool) -> Review:
    """Return a page of the players with the event of this kind.

    A page with few matches has a next page if the search stopped at its limit.
    """
    event = EVENTS[kind]
    found: Sequence[ChangedProfile]
    if kind == "players":
        found = await history.registered(statements, before, size + 1, seen)
    else:
        found = await history.changed(statements, event, most=size + 1, before=before, seen=seen)
    end = await history.end_of_changes(statements, event, before) if len(found) <= size else None
    shown, following = cut([*found], size, _event, end)
    return Review(players=shown, next=following) if kind == "players" else Review(profiles=shown, next=following)
