"""The errors of live events: each is counted, and of each kind one a minute is logged."""

from typing import Literal, TypeAlias

from twisted.internet.base import ReactorBase
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..process.metrics import Metrics

QUIET_SECONDS = 60.0

FaultKind: TypeAlias = Literal["dropped", "missed", "unknown", "database"]


class LiveErrors:
    """Counts and logs what goes wrong with live events, where no caller is told."""

    _log = Logger()

    def __init__(self, *, reactor: ReactorBase, metrics: Metrics) -> None:
        self._reactor = reactor
        self._metrics = metrics
        self._logged_at: dict[FaultKind, float] = {}

    def note(self, kind: FaultKind, text: str) -> None:
        """Count a fault after which the streams heal by themselves."""
        self._metrics.live_faults.labels(kind).inc()
        now = self._reactor.seconds()
        if now - self._logged_at.get(kind, float("-inf")) >= QUIET_SECONDS:
            self._logged_at[kind] = now
            self._log.warn("live events: {text}", text=text)

    def failed(self, failure: Failure, text: str) -> None:
        """Count and log an error of this program."""
        self._metrics.live_faults.labels("error").inc()
        self._log.failure("live events: {text}", failure, text=text)
