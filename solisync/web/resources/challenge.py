"""The daily challenge over HTTP (docs/protocol.md "The daily challenge")."""

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from ...rules.challenge import DailyChallenge, daily_challenge, seconds_left
from ..route import get
from ..wire.reply import Reply


class Challenge:
    """Serves the challenge of the day."""

    tag: ClassVar[str] = "challenge"

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._today = daily_challenge(now().date())
        self._reply = Reply.of(self._today)

    @get(
        "/api/daily-challenge",
        name="daily_challenge",
        summary="Show the deal of the day and its goal",
        answer=DailyChallenge,
    )
    async def daily(self) -> Reply:
        """Today's challenge, in UTC; caches may keep it until midnight."""
        now = self._now()
        if now.date() != self._today.date:
            self._today = daily_challenge(now.date())
            self._reply = Reply.of(self._today)
        return self._reply.with_headers({"Cache-Control": f"public, max-age={seconds_left(now)}"})
