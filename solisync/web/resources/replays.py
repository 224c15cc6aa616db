"""Replays over HTTP (docs/protocol.md "Replays")."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...errors import BadRequest, Locked, NotFound, existing
from ...events.bus import Bus
from ...events.notices import BoardsChanged, ReplayStored, boards_changed
from ...postgres.database import Database
from ...postgres.transaction import Transaction
from ...process.audit import Event, audit
from ...rules.guests import QUOTA_BYTES
from ...rules.queries import read_position
from ...rules.replay_lists import (
    Listed,
    ListQuery,
    OwnReplays,
    PlayerReplays,
    Recent,
    RecentQuery,
    RecentReplays,
    own_page,
    player_page,
    recent_page,
)
from ...rules.replays import ReceivedReplay, Replay, Uploaded, charge, read_replay
from ...rules.shapes import Ok, is_id
from ...storage.replays import boards, own_replays, recent_replays, replays
from ..json_schemas import EXAMPLE, RecordedGame
from ..kept_replies import as_list
from ..route import Json, delete, get, post, put
from ..shared_cache import CoalescingCache
from ..wire.reply import Reply, matches

KEPT = {"Cache-Control": "public, max-age=300"}


@dataclass(frozen=True, kw_only=True)
class Replays:
    """Stores, lists and returns replays, and lets players unlist and delete their own."""

    tag: ClassVar[str] = "replays"

    database: Database
    board: CoalescingCache[Reply]
    recent: CoalescingCache[list[Recent]]
    bus: Bus
    quota_bytes: int | None
    now: Callable[[], datetime]
    new_id: Callable[[], str]

    @post(
        "/api/replays",
        name="upload_replay",
        summary="Store a replay; repeated uploads of a game count once",
        protected=True,
        body=Json(Replay, read_replay, EXAMPLE, narrower=RecordedGame),
        errors=("replay_storage_full", "user_not_found"),
        links={
            "replay": {"replay_id": "$response.body#/id"},
            "verdict": {"replay_id": "$response.body#/id"},
            "timeline": {"replay_id": "$response.body#/id"},
        },
    )
    async def upload(self, *, player: str, body: ReceivedReplay) -> Uploaded:
        """Store a replay byte for byte, unless it is stored; a new Classic one may improve its player's entry."""
        return Uploaded(await self.database.transact(self._store, player, self.new_id(), body))

    @get(
        "/api/replays/recent",
        name="recent_replays",
        summary="List the newest replays of all players; with `before`, page by page",
        answer=list[Recent] | RecentReplays,
    )
    async def list_recent(self, *, query: RecentQuery, gzip: bool) -> Reply:
        """Return the newest replays of all players, or the newest verified ones; with `before`, a page of them."""
        count, verified = query.count, query.verdict is not None
        if query.before is None:
            return as_list(Reply.of((await self.recent.get(verified))[:count]).body)[gzip]
        if not query.before:
            return as_list(Reply.of(recent_page(await self.recent.get(verified), count)).body)[gzip]
        position = read_position(query.before, "before")
        return Reply.of(recent_page(await self.database.run(recent_replays.recent, verified, position), count))

    @get(
        "/api/players/{username}/replays",
        name="player_replays",
        summary="List a player's replays, page by page",
        errors=("player_not_found",),
    )
    async def list_of_player(self, *, username: str, query: ListQuery) -> PlayerReplays:
        """Return a page of a player's listed replays, newest first; NotFound if the player has none."""
        position = read_position(query.before, "before")
        page = await self.database.run(own_replays.listed_page, username, position)
        if not page and (position is None or not await self._has_listed(username)):
            raise NotFound("player_not_found")
        return player_page(page, query.count)

    @get(
        "/api/replays/{replay_id}",
        name="replay",
        summary="Return a replay as it was uploaded",
        answer=Replay,
        errors=("replay_not_found",),
    )
    async def fetch(self, *, replay_id: str, if_none_match: str | None) -> Reply:
        """Return a replay as it was uploaded. A replay never changes, so its id is its entity tag."""
        if not is_id(replay_id):
            raise NotFound("replay_not_found")
        headers = {**KEPT, "ETag": f'"{replay_id}"'}
        if matches(if_none_match, headers["ETag"]) and await self.database.run(replays.owner, replay_id) is not None:
            return Reply.not_modified(headers)
        body = existing(await self.database.run(replays.fetch, replay_id), "replay_not_found")
        return Reply(body=body, headers=headers)

    @get(
        "/api/me/replays",
        name="own_replays",
        summary="List the player's own replays, page by page",
        protected=True,
        errors=("user_not_found",),
    )
    async def list_own(self, *, player: str, query: ListQuery) -> OwnReplays:
        """Return a page of the player's own replays, newest first, including unlisted ones."""
        position = read_position(query.before, "before")
        return own_page(existing(await self.database.run(own_replays.page, player, position)), query.count)

    @delete(
        "/api/replays/{replay_id}",
        name="delete_replay",
        summary="Delete a replay of the player",
        protected=True,
        errors=("user_not_found", "replay_not_found"),
    )
    async def delete(self, *, player: str, replay_id: str) -> Ok:
        """Delete a replay of the player. Its bests stay on the leaderboard."""
        with self.board.changing(), self.recent.changing():
            deleted, changed = await self.database.transact(
                boards.changed_by, player, own_replays.delete, player, _key(replay_id)
            )
        deleted = existing(deleted)
        if not deleted.existed:
            raise NotFound("replay_not_found")
        self._conclude("replay deleted", player, changed, listed=deleted.was_listed)
        return Ok()

    @put(
        "/api/replays/{replay_id}/listed",
        summary="List a replay of the player publicly, or unlist it",
        protected=True,
        for_guests=False,
        errors=("locked", "user_not_found", "replay_not_found"),
    )
    async def set_listed(self, *, player: str, replay_id: str, body: Listed) -> Ok:
        """List a replay of the player publicly, or unlist it; its own link works either way."""
        with self.board.changing(), self.recent.changing():
            found, changed = await self.database.transact(
                boards.changed_by, player, own_replays.set_listed, player, _key(replay_id), body.listed
            )
        found = existing(found)
        if not found.exists:
            raise NotFound("replay_not_found")
        if found.held:
            raise Locked
        if found.changed:
            self._conclude("replay listed" if body.listed else "replay unlisted", player, changed, listed=True)
        return Ok()

    async def _has_listed(self, username: str) -> bool:
        return bool(await self.database.run(own_replays.listed_page, username, None))

    def _conclude(self, event: Event, player: str, changed: tuple[str, ...], *, listed: bool) -> None:
        """Publish the changes of a commit: these boards, and public lists if the replay is or was `listed`."""
        if listed:
            self.recent.invalidate()
        if changed:
            self.board.invalidate()
            self.bus.publish(*boards_changed(changed))
        audit(event, user_id=player)

    async def _store(self, transaction: Transaction, player: str, replay_id: str, replay: ReceivedReplay) -> str:
        """Store a replay under this id, unless it is stored already; return its id."""
        room = existing(await replays.room(transaction, player, replay.digest))
        if room.repeated_id is not None:
            return room.repeated_id
        quota = min(self.quota_bytes or QUOTA_BYTES, QUOTA_BYTES) if room.guest else self.quota_bytes
        if quota is not None and room.used_bytes + charge(len(replay.raw)) > quota:
            await transaction.commit()  # keeps the count; otherwise each refused upload would count again
            raise BadRequest("replay_storage_full", "replay storage is full")
        improved = room.standing.improved_by(replay.header.bests)
        bests = replay.header.bests if improved else None
        shown = improved and room.standing.visible
        try:
            await transaction.commit_with(*replays.storing(player, replay_id, replay, bests, self.now()))
        finally:
            self.recent.invalidate()
            if shown:
                self.board.invalidate()
        self.bus.publish(ReplayStored())
        if shown:
            self.bus.publish(BoardsChanged(("leaderboard",)))
        return replay_id


def _key(replay_id: str) -> str | None:
    """The id for a statement, or None if no replay can have it: the statement must still look for the player."""
    return replay_id if is_id(replay_id) else None
