"""What the console's routes of acts take and answer (docs/console.md "Acts")."""

from datetime import datetime
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ..errors import BadRequest
from .administration import MESSAGE_MAX, NOTE_MAX, Reason, check_text
from .fields import Checked, Time

MANY = 100  # players in one request

Until = Annotated[Time, Meta(description="when it ends by itself; null: it lasts")]
Message = Annotated[str, Meta(description=f"what the player is told, 1 to {MESSAGE_MAX} code points")]
Note = Annotated[str, Meta(description=f"1 to {NOTE_MAX} code points; the player gets it with an export")]


class ActBody(Checked, frozen=True, kw_only=True):
    """Why somebody acts. The reason `other` wants a note."""

    reason: Reason
    note: Note | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reason == "other" and not (self.note or "").strip():
            raise ValueError("note: the reason 'other' needs one")


class SuspensionBody(ActBody, frozen=True, kw_only=True):
    """Whether a player is to be suspended; again: with another end and message."""

    suspended: bool
    until: Until | None = None
    message: Message | None = None


class SuspensionsBody(ActBody, frozen=True, kw_only=True):
    """Players to suspend."""

    ids: Annotated[list[str], Meta(min_length=1, max_length=MANY)]
    until: Until | None = None
    message: Message | None = None


class LockBody(ActBody, frozen=True, kw_only=True):
    """Whether a player's profile is to be locked."""

    locked: bool


class EndSessionsBody(ActBody, frozen=True, kw_only=True):
    """With `access`, access tokens are refused too, within a second."""

    access: bool = False


class LinkBody(ActBody, frozen=True, kw_only=True):
    """With `lock_out`, the old password, sessions, access tokens and recovery codes end at once."""

    lock_out: bool = False


class UsernameBody(ActBody, frozen=True, kw_only=True):
    """The new username."""

    username: str


class EntryBody(ActBody, frozen=True, kw_only=True):
    """What the entry on the leaderboard is to be called, or whether it is to be visible, or both."""

    display_name: str | UnsetType = UNSET
    visible: bool | UnsetType = UNSET


class DeletionBody(ActBody, frozen=True, kw_only=True):
    """The username of the player to delete, to be sure."""

    username: str


class ListedBody(ActBody, frozen=True, kw_only=True):
    """Whether a replay is to be listed; one that is not is held, so that its player can't list it."""

    listed: bool


class CheckBody(ActBody, frozen=True, kw_only=True):
    """Whether the replay is to be checked also if it has a verdict."""

    again: bool = False


class Acted(Struct, frozen=True, kw_only=True):
    """Done. What was so already is not changed, and leaves no act, so a request may be repeated."""

    ok: bool = True
    changed: bool


class EndedSessions(Acted, frozen=True, kw_only=True):
    """How many sessions have ended."""

    ended: int


class NewLink(Acted, frozen=True, kw_only=True):
    """A reset link, which is shown this once: the page of the players' site that the path names."""

    path: str
    expires_at: datetime


class Suspended(Struct, frozen=True, kw_only=True):
    """The ids of those who are suspended now, of those who don't exist, and of those left for another request."""

    suspended: list[str]
    missing: list[str]
    left: list[str]


def check_suspension(until: datetime | None, message: str | None, now: datetime) -> str | None:
    """The message; raises BadRequest for a wrong one, or for an end that has passed."""
    if until is not None and not now < until:
        raise BadRequest("bad_field", "until must be in the future")
    return None if message is None else check_text(message, "message", MESSAGE_MAX)
