"""Routes that show replays to admins (docs/console.md "The interface")."""

import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import asdict, replace

from ...checking.timelines import Timelines
from ...errors import Conflict, NotFound, Unavailable, existing
from ...klondike import UNPROVED, in_words
from ...players.finding import cut
from ...postgres.database import Database
from ...postgres.transaction import Statements
from ...rules.queries import ListPosition, read_position
from ...rules.recovery import on_site
from ...rules.replays import VerdictStatus
from ...rules.shapes import is_id
from ...settings.settings import ServingSettings
from ...storage.replays import listed_replays, replays, verdicts
from ..wire.reply import Reply
from .declaring import NO_REPLAY, Older, get
from .shapes import FoundReplays, ReplayFacts


class ReplaysQuery(Older, frozen=True):
    """The filter of a list of replays, and the page to return."""

    verdict: VerdictStatus | None = None
    held: bool = False


async def page_of(
    statements: Statements, wanted: ReplaysQuery, user_id: str | None = None, *, seen: bool = True
) -> FoundReplays:
    """Return a page of all replays or of one player's.

    A page with few matches has a next page if the search stopped at its limit.
    """
    before, size = read_position(wanted.before, "before"), wanted.limit
    verdict, held = wanted.verdict, wanted.held
    found = await listed_replays.page(
        statements, most=size + 1, user_id=user_id, verdict=verdict, held=held, before=before, seen=seen
    )
    end = None
    if len(found) <= size and (verdict or held or not seen):
        end = await listed_replays.end_of_page(statements, user_id=user_id, before=before)
    return FoundReplays(*cut(found, size, _place, None if end is None else end.text))


def _place(replay: listed_replays.FoundReplay) -> str:
    return ListPosition(replay.received_at, replay.id).text


@dataclass(frozen=True, kw_only=True)
class ReplayViews:
    """Lists replays, and shows everything about one replay."""

    tag: ClassVar[str] = "replays"

    settings: ServingSettings
    database: Database
    timelines: Timelines

    @get("/replays", name="find_replays", summary="List replays, newest first")
    async def newest(self, query: ReplaysQuery) -> FoundReplays:
        """Return a page of all players' replays, newest first."""
        return await self.database.run(page_of, query)

    @get("/replays/{replay_id}", name="replay", errors=NO_REPLAY)
    async def show(self, replay_id: str) -> ReplayFacts:
        """Show a replay with its verdict, and what its moves prove if it is refuted or undecided."""
        facts = await self.database.run(_facts, _known(replay_id), self.settings.site_url)
        if facts.proved is None and facts.status in UNPROVED:  # an older version has checked it, or the check crashed
            with suppress(Unavailable):
                proved = (await self.timelines.evidence(replay_id)).proved
                facts = replace(facts, proved=proved, finding=in_words(facts.final_score, proved))
        return facts

    @get(
        "/replays/{replay_id}/body", name="replay_body", summary="Return a replay as it was uploaded", errors=NO_REPLAY
    )
    async def body(self, replay_id: str) -> Reply:
        """Return the replay as it was uploaded."""
        return Reply(body=existing(await self.database.run(replays.fetch, _known(replay_id)), "replay_not_found"))

    @get("/replays/{replay_id}/timeline", name="replay_timeline", errors=(*NO_REPLAY, "not_playable"))
    async def timeline(self, replay_id: str) -> Reply:
        """Return each step of a verified replay, or of a refuted or undecided one up to its first illegal move."""
        found = existing(await self.database.run(verdicts.timeline_tag, _known(replay_id)), "replay_not_found")
        if found.etag is not None:
            timeline = self.timelines.remembered(found.etag) or await self.timelines.make(replay_id, found.etag)
            return Reply(body=zlib.decompress(timeline.compressed))
        verdict = await self.database.run(verdicts.verdict, replay_id)
        if verdict is not None and verdict.status in UNPROVED:
            played = await self.timelines.evidence(replay_id)
            if played.timeline is not None:
                return Reply(body=zlib.decompress(played.timeline))
        raise Conflict("not_playable", "replay can not be played back")


async def _facts(statements: Statements, replay_id: str, site_url: str | None) -> ReplayFacts:
    found = existing(await verdicts.show(statements, replay_id), "replay_not_found")
    same_game = await listed_replays.same_game(statements, replay_id)
    page = on_site(site_url, f"/replays/{replay_id}")
    return ReplayFacts(**asdict(found.replay), finding=found.replay.finding, page=page, same_game=same_game)


def _known(replay_id: str) -> str:
    if not is_id(replay_id):
        raise NotFound("replay_not_found")
    return replay_id
