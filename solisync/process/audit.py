"""The audit trail: one line for each change to who may be whom, written where the change has been committed."""

from typing import Literal

from twisted.logger import Logger

Event = Literal["register", "login", "login failed", "refresh", "refresh refused", "password reset", "account deleted"]

NAMESPACE = "solisync.audit"

_log = Logger(namespace=NAMESPACE)


def audit(event: Event, *, user_id: str | None = None, reason: str | None = None) -> None:
    """Log that `event` happened to this user; the request's client and id are added by the log itself.

    A name that somebody tried to log in with is never written down: it may be a password.
    """
    about = "".join(f", {what}" for what in (user_id and f"user {user_id}", reason) if what)
    _log.info("{event}{about}", event=event, about=about, user_id=user_id, reason=reason)
