"""The errors of live events: all are counted, and one of each kind is logged each minute."""

from typing import Literal, TypeAlias

from twisted.internet.base import ReactorBase
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..process.metrics import Metrics

QUIET_SECONDS = 60.0

FaultKind: TypeAlias = Literal["dropped", "missed", "unknown", "database"]


class LiveErrors:
    """Counts and logs errors of live events, which no caller receives."""

    _log = Logger()

    def __init__(self, *, reactor: ReactorBase, metrics: Metrics) -> None:
        self._reactor = reactor
        self._metrics = metrics
        self._logged_at: dict[FaultKind, float] = {}

    def note(self, kind: FaultKind, text: str) -> None:
        """Count a fault from which the streams recover automatically."""
        self._metrics.live_faults.labels(kind).inc()
        now = self._reactor.seconds()
        if now - self._logged_at.get(kind, float("-inf")) >= QUIET_SECONDS:
            self._logged_at[kind] = now
            self._log.warn("live events: {text}", text=text)

    def failed(self, failure: Failure, text: str) -> None:
        """Count and log a bug in this program."""
        self._metrics.live_faults.labels("error").inc()
        self._log.failure("live events: {text}", failure, text=text)
