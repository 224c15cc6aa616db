"""Analytics over HTTP (contract §10)."""

from collections.abc import Callable
from datetime import datetime

from ..postgres.database import Database
from ..process.metrics import Metrics
from ..rules.analytics import Receipt, UndecodedBatch, splittable, validate
from ..storage import analytics
from .wire.request import read_json


class Analytics:
    """Takes what games report."""

    def __init__(self, *, database: Database, metrics: Metrics, now: Callable[[], datetime]) -> None:
        self._database = database
        self._metrics = metrics
        self._now = now

    async def receive(self, *, raw: bytes) -> Receipt:
        """Store the good events of a batch, each once, and say what became of all of them."""
        now = self._now()
        judged = validate(read_json(splittable(raw), UndecodedBatch), now)
        stored = 0
        if judged.events:
            stored = await self._database.autocommit(
                analytics.store,
                session_id=judged.session_id,
                name=judged.name,
                events=judged.events,
                now=now,
            )
        duplicates = judged.accepted - stored
        for outcome, count in (("accepted", stored), ("duplicate", duplicates), ("rejected", len(judged.rejected))):
            self._metrics.events.labels(outcome).inc(count)
        return Receipt(accepted=judged.accepted, duplicates=duplicates, rejected=judged.rejected)
