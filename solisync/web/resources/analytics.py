"""Analytics over HTTP (docs/protocol.md "Analytics")."""

from collections.abc import Callable
from datetime import datetime

from ...postgres.database import Database
from ...process.metrics import Metrics
from ...rules.analytics import Receipt, UndecodedBatch, validate
from ...storage import analytics


class Analytics:
    """Receives events from games."""

    def __init__(self, *, database: Database, metrics: Metrics, now: Callable[[], datetime]) -> None:
        self._database = database
        self._metrics = metrics
        self._now = now

    async def receive(self, *, body: UndecodedBatch) -> Receipt:
        """Store the valid events of a batch, each once, and report the result of each."""
        now = self._now()
        batch = validate(body, now)
        stored = 0
        if batch.events:
            stored = await self._database.autocommit(
                analytics.store,
                session_id=batch.session_id,
                name=batch.name,
                events=batch.events,
                now=now,
            )
        duplicates = batch.accepted - stored
        for outcome, count in (("accepted", stored), ("duplicate", duplicates), ("rejected", len(batch.rejected))):
            self._metrics.events.labels(outcome).inc(count)
        return Receipt(accepted=batch.accepted, duplicates=duplicates, rejected=batch.rejected)
