"""The daily challenge over HTTP (docs/protocol.md "The daily challenge")."""

from collections.abc import Callable
from datetime import datetime

from ...rules.challenge import daily_challenge, seconds_left
from ..wire.reply import Reply


class Challenge:
    """Serves the challenge of the day."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._today = daily_challenge(now().date())
        self._reply = Reply.of(self._today)

    async def daily(self) -> Reply:
        """Today's challenge, in UTC; caches may keep it until midnight."""
        now = self._now()
        if now.date() != self._today.date:
            self._today = daily_challenge(now.date())
            self._reply = Reply.of(self._today)
        return self._reply.with_headers({"Cache-Control": f"public, max-age={seconds_left(now)}"})
