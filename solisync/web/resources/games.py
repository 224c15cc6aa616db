"""Finished games over HTTP, each counted once by its id (docs/sync.md, docs/protocol.md "Progress")."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import ClassVar

import msgspec

from ...access.large_bodies import LargeBodies
from ...access.rate_limit import GAMES, RateLimiter
from ...errors import NotFound, TooMany
from ...events.bus import Bus
from ...players import progress
from ...postgres.database import Database
from ...postgres.transaction import Transaction
from ...process.metrics import Metrics
from ...rules.counting import NO_GAMES, counts_of
from ...rules.documents import default_document, read_stored
from ...rules.games import (
    Games,
    GamesAnswer,
    ReceivedGame,
    ReceivedGames,
    read_game,
    read_games,
    results_of,
)
from ...rules.sessions import SessionRef
from ...storage.players import games, sync
from ..route import Json, post
from ..shared_cache import CoalescingCache
from ..wire.reply import Reply
from .sync import NO_HEADERS, etag

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, kw_only=True)
class FinishedGames:
    """Counts games that clients send by their ids."""

    tag: ClassVar[str] = "sync"

    database: Database
    limiter: RateLimiter
    board: CoalescingCache[Reply]
    large_bodies: LargeBodies
    metrics: Metrics
    bus: Bus
    now: Callable[[], datetime]

    @post(
        "/api/games",
        name="count_games",
        summary="Count finished games, each once",
        protected=True,
        body=Json(Games, read_games),
        answer=GamesAnswer,
        errors=("batch_too_large", "user_not_found"),
    )
    async def count(self, *, player: str, session: SessionRef, body: ReceivedGames) -> Reply:
        """Count those games of the request that are new; return once they are committed.

        A request may be repeated, whole or in part: a game whose id this player has sent before isn't counted again.
        """
        self.limiter.check(GAMES, player)
        read = [read_game(raw) for raw in body.games]
        sent: dict[str, ReceivedGame] = {}
        for game in read:
            if isinstance(game, ReceivedGame):
                sent.setdefault(game.game_id, game)
        payload, counted = await self.database.transact(self._count, player, session, sent, body.size)
        results = results_of(read, counted)
        for outcome, number in Counter(result.outcome for result in results).items():
            self.metrics.games.labels(outcome).inc(number)
        now = self.now()
        parts = _encode(results), payload or default_document(player, now).encode(), _encode(now.astimezone(UTC))
        headers = NO_HEADERS if payload is None else etag(payload)
        return Reply(body=b'{"games":%b,"merged":%b,"server_time":%b}' % parts, headers=headers)

    async def _count(
        self,
        transaction: Transaction,
        player: str,
        session: SessionRef,
        sent: dict[str, ReceivedGame],
        size: int,
    ) -> tuple[bytes | None, set[str]]:
        """Count the new games of a request; return the stored progress, if any, and the ids of the new games."""
        loaded = await games.load(transaction, *session, sent, GAMES.hit(player))
        if loaded is None:
            raise NotFound("user_not_found")
        saved, memory = loaded
        self.limiter.settle(GAMES, player, memory.wait)
        new = [game for game in sent.values() if not memory.has(game)]
        if not new:
            stored = saved.payload
            counts = saved.counts or (NO_GAMES if stored is None else counts_of(read_stored(stored).payload))
            await transaction.commit_with(sync.answering(*session, counts))
            return stored, set()
        if memory.full_for is not None:
            self.metrics.refused(GAMES.name)
            await transaction.commit()  # or the request would not count, and could be repeated without end
            raise TooMany(ceil(memory.full_for))
        with self.large_bodies.merging(player, pushed=size, stored=len(saved.payload or b"")):
            change, added = progress.with_new_games(player, new, memory.latest, saved, memory.now, memory.win_seconds)
        remembering = games.adding(player, added.shares, memory.spare, added.win_seconds)
        try:
            await transaction.commit_with(*change.steps, *remembering, sync.answering(*session, change.counts))
        finally:
            if change.shown:
                self.board.invalidate()
        if change.notices:
            self.bus.publish(*change.notices)
        return change.payload, {game.game_id for game in new}
