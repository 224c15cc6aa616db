"""The parts of a process, from which its resources and sites are built."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from twisted.internet.base import ReactorBase

from ..access.large_bodies import LargeBodies
from ..access.passwords import Passwords
from ..access.rate_limit import RateLimiter
from ..access.tokens import Tokens
from ..checking.timelines import Timelines
from ..events.bus import Bus
from ..events.streams import Streams
from ..players.history import History
from ..postgres.database import Database
from ..process.metrics import Metrics
from ..rules.replay_lists import Recent
from ..settings.settings import ServingSettings
from .shared_cache import CoalescingCache
from .wire.reply import Reply


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts.

    `board` is the encoded leaderboard, `recent` the list of recent replays, and `schema_number` the newest migration's
    number.
    """

    settings: ServingSettings
    reactor: ReactorBase
    metrics: Metrics
    database: Database
    bus: Bus
    live_streams: Streams
    timelines: Timelines
    history: History
    passwords: Passwords
    tokens: Tokens
    limiter: RateLimiter
    large_bodies: LargeBodies
    board: CoalescingCache[Reply]
    recent: CoalescingCache[list[Recent]]
    schema_number: int
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    handler_seconds: float

    def forget_lists(self) -> None:
        """Empty the caches of public lists."""
        self.board.invalidate()
        self.recent.invalidate()
