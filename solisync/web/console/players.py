"""Routes that show players to admins (docs/console.md "The interface")."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta, Struct
from twisted.internet.base import ReactorBase

from ...errors import BadRequest, NotFound, existing
from ...players.facts import facts, history_of, read_place
from ...players.finding import SLOW, FoundPlayers, Where, cut, find
from ...postgres.database import Database
from ...postgres.transaction import Statements
from ...process.audit import audit
from ...rules.administration import PlayerFacts
from ...rules.avatars import AVATAR_TYPES, media_type
from ...rules.queries import EARLIER, ListPosition, read_position
from ...rules.shapes import is_id
from ...settings.settings import ServingSettings
from ...storage.operators import acts
from ...storage.operators.acts import Actor
from ...storage.paging import END
from ...storage.players import accounts, avatars, export, games, player_lists, sessions
from ...storage.players.player_lists import START, Order, PlayerPlace, State
from ..handler_limits import ExpensiveQueries
from ..resources.avatars import SANDBOX
from ..resources.export import download
from ..route import Content
from ..wire.reply import Reply
from .declaring import MOST, NO_PLAYER, SHOWN, TEXT_MAX, Older, Place, Size, get
from .replays import ReplaysQuery, page_of
from .shapes import CountedGames, FoundReplays, PlayerHistory, PlayerSessions

SearchText = Annotated[str, Meta(max_length=TEXT_MAX, description="the text to search for")]

PART_SECONDS = 2.0  # limit of a search for a part of a name, which then returns what it has found


class PlayersQuery(Struct, frozen=True):
    """Players to list in an order, or to find by a text."""

    q: SearchText = ""
    where: Where | None = None
    sort: Order | None = None
    state: State | None = None
    after: Place | None = None
    limit: Size | None = None


@dataclass(frozen=True, kw_only=True)
class PlayerViews:
    """Finds players, and shows everything about one player."""

    tag: ClassVar[str] = "players"

    settings: ServingSettings
    database: Database
    reactor: ReactorBase
    expensive: ExpensiveQueries

    @get("/players", name="find_players", summary="List players, or find them by name, id or address")
    async def find(self, query: PlayersQuery) -> FoundPlayers:
        """List players in an order, newest first by default, or find them by id, name or address."""
        text = query.q.strip()
        if query.sort or query.state or (not text and query.where != "address"):
            if text:
                raise BadRequest("bad_query", "sort and state can't be combined with q")
            return await self._list(query)
        where = query.where or "name"

        async def search(statements: Statements) -> FoundPlayers:
            size = query.limit or SHOWN
            return await find(statements, self.reactor, text, where, size, PART_SECONDS, query.after)

        if where in SLOW:
            return await self.expensive.run(self.database.run, search)
        return await self.database.run(search)

    async def _list(self, query: PlayersQuery) -> FoundPlayers:
        order, state = query.sort or "newest", query.state
        only = state is None and order in ("replays", "bytes")
        size, place = query.limit or (MOST if only else SHOWN), _read_place(query.after)
        page = await self.database.run(player_lists.page, order, state, most=size, after=place)
        return FoundPlayers(page.players, None if page.next is None else str(page.next), more=page.more)

    @get("/players/{user_id}", name="player", errors=NO_PLAYER)
    async def show(self, user_id: str) -> PlayerFacts:
        """Show facts and counts about a player."""
        return await self.database.run(facts, _known(user_id), self.settings.site_url)

    @get("/players/{user_id}/sessions", name="player_sessions", errors=NO_PLAYER)
    async def sessions(self, user_id: str) -> PlayerSessions:
        """List the sessions of a player."""
        return PlayerSessions(existing(await self.database.run(sessions.listed, _known(user_id)), "player_not_found"))

    @get(
        "/players/{user_id}/replays",
        name="player_replays",
        summary="List the replays of a player, newest first",
        errors=NO_PLAYER,
    )
    async def replays(self, user_id: str, query: ReplaysQuery) -> FoundReplays:
        """Return a page of a player's replays."""
        return await self.database.run(page_of, query, _known(user_id))

    @get(
        "/players/{user_id}/avatar",
        name="player_avatar",
        summary="Show the avatar of a player",
        answer=Content(AVATAR_TYPES),
        errors=("avatar_not_found", *NO_PLAYER),
    )
    async def avatar(self, user_id: str) -> Reply:
        """Return the avatar of a player, even if other players may not see it."""
        profile = await self.database.run(accounts.profile, _known(user_id))
        extension = existing(None if profile is None else profile.avatar_extension, "avatar_not_found")
        found = await self.database.run(avatars.avatar, user_id, extension, suspended_too=True)
        image = existing(found, "avatar_not_found")
        return Reply(body=image.image, content_type=media_type(extension), headers=SANDBOX)

    @get(
        "/players/{user_id}/history",
        name="player_history",
        summary="List the history of a player, with the acts of operators",
        errors=NO_PLAYER,
    )
    async def history(self, user_id: str, query: Older) -> PlayerHistory:
        """Return a page of a player's history."""
        place = read_place(query.before)
        if await self.database.run(accounts.find, _known(user_id), None) is None:
            raise NotFound("player_not_found")
        entries, following = await self.database.run(history_of, user_id, most=query.limit, before=place)
        return PlayerHistory(entries, None if following is None else str(following))

    @get(
        "/players/{user_id}/games",
        name="player_games",
        summary="List the games that a player has sent by their ids, last counted first",
        errors=NO_PLAYER,
    )
    async def games(self, user_id: str, query: Older) -> CountedGames:
        """Return a page of a player's games."""
        place = read_position(query.before, "before") or END
        if await self.database.run(accounts.find, _known(user_id), None) is None:
            raise NotFound("player_not_found")
        found = await self.database.run(games.counted, user_id, *place, query.limit + 1)
        shown, following = cut(found, query.limit, lambda game: ListPosition(game.counted_at, game.game_id).text)
        return CountedGames(shown, following)

    @get(
        "/players/{user_id}/export",
        name="player_export",
        summary="Return everything that is stored about a player",
        errors=NO_PLAYER,
    )
    async def export(self, user_id: str, head_only: bool, actor: Actor) -> Reply:
        """Return everything that is stored about a player, in the document that players get."""
        start = existing(await self.database.run(export.begin, _known(user_id)), "player_not_found")
        if not head_only:
            await self.database.run(acts.record_export, user_id, by=actor)
            audit("exported", user_id=user_id)
        return download(self.database, start)


def _read_place(after: str | None) -> PlayerPlace:
    """Return the place after which a page begins; raises BadRequest."""
    if after is None:
        return START
    parts = re.fullmatch(r"(-1|\d{1,18})\.(.{36})", after, re.ASCII)
    if parts is None or not is_id(parts[2]):
        raise BadRequest("bad_query", f"after must be {EARLIER}")
    return PlayerPlace(int(parts[1]), parts[2])


def _known(user_id: str) -> str:
    if not is_id(user_id):
        raise NotFound("player_not_found")
    return user_id
