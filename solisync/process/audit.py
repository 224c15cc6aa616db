"""The audit trail: one log line for each event of an account, written when the event has been committed.

See docs/security.md "Logs".
"""

from typing import Literal

from twisted.logger import Logger

from .logs import quick_info

Event = Literal[
    "register",
    "login",
    "login failed",
    "refresh",
    "refresh refused",
    "logged out",
    "session ended",
    "sessions ended",
    "password changed",
    "password change refused",
    "password reset",
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
]

NAMESPACE = "solisync.audit"

_log = Logger(namespace=NAMESPACE)


def audit(event: Event, *, user_id: str | None = None, reason: str | None = None) -> None:
    """Log an event of this user; solisync.process.logs adds the client and the id of the request.

    The username of a failed login is never logged: it may be a password that was typed into the wrong field.
    """
    about = "".join(f", {what}" for what in (user_id and f"user {user_id}", reason) if what)
    quick_info(_log, "{event}{about}", event=event, about=about, user_id=user_id, reason=reason)
