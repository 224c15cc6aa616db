"""Analytics over HTTP (docs/protocol.md "Analytics")."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...access.rate_limit import ANALYTICS
from ...postgres.database import Database
from ...process.metrics import Metrics
from ...rules.analytics import Batch, Receipt, UndecodedBatch, read_batch, validate
from ...storage import analytics
from ..route import Json, post


@dataclass(frozen=True, kw_only=True)
class Analytics:
    """Receives events from games."""

    tag: ClassVar[str] = "analytics"

    database: Database
    metrics: Metrics
    now: Callable[[], datetime]

    @post(
        "/api/analytics",
        name="report",
        summary="Store events of a game",
        limit=ANALYTICS,
        body=Json(Batch, read_batch),
        errors=("batch_too_large",),
    )
    async def receive(self, *, body: UndecodedBatch) -> Receipt:
        """Store each valid event of a batch once, and report the result of each event."""
        now = self.now()
        batch = validate(body, now)
        stored = 0
        if batch.events:
            stored = await self.database.run(
                analytics.store,
                session_id=batch.session_id,
                name=batch.name,
                events=batch.events,
                now=now,
            )
        duplicates = batch.accepted - stored
        for outcome, count in (("accepted", stored), ("duplicate", duplicates), ("rejected", len(batch.rejected))):
            self.metrics.events.labels(outcome).inc(count)
        return Receipt(accepted=batch.accepted, duplicates=duplicates, rejected=batch.rejected)
