"""The audit trail: a log line for each event of an account, written after the commit of the event.

While a request is being handled, its observer gets each event too. See docs/security.md "Logs".
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Literal, NamedTuple

from twisted.logger import Logger

from .logs import AUDIT, quick_info

Event = Literal[
    "register",
    "guest",
    "guest joined",
    "guest key changed",
    "guest key refused",
    "claim refused",
    "login",
    "login repeated",
    "login failed",
    "refresh",
    "refresh repeated",
    "refresh refused",
    "logged out",
    "session ended",
    "sessions ended",
    "password changed",
    "password change refused",
    "password reset",
    "password recovered",
    "recovery refused",
    "recovery codes made",
    "account deleted",
    "replay deleted",
    "replay listed",
    "replay unlisted",
    "opted in",
    "opted out",
    "avatar changed",
    "avatar removed",
    "exported",
    "act",
    "admin signed in",
    "admin sign-in refused",
]

_log = Logger(namespace=AUDIT)


class Happened(NamedTuple):
    """An event of an account, and its client, identified as in rate limits; None for a command."""

    event: Event
    user_id: str | None
    reason: str | None
    client: str | None


class Observed(NamedTuple):
    """A request that is being handled: its client, and the observer of its events."""

    client: str
    observer: Callable[[Happened], None]


observed: ContextVar[Observed | None] = ContextVar("observed", default=None)


def audit(event: Event, *, user_id: str | None = None, reason: str | None = None) -> None:
    """Log an event of this player; solisync.process.logs adds the client and the id of the request.

    The username of a failed login is never logged: it may be a password typed into the wrong field.
    """
    about = "".join(f", {what}" for what in (user_id and f"user {user_id}", reason) if what)
    quick_info(_log, "{event}{about}", event=event, about=about, user_id=user_id, reason=reason)
    request = observed.get()
    if request is not None:
        request.observer(Happened(event, user_id, reason, request.client))
