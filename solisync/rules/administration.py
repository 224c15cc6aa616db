"""Admins and moderation acts: the shapes of the console's requests and answers, and their rules.

See docs/administration.md "Admins", docs/console.md "Acts", docs/moderation.md.
"""

import re
import secrets
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from ..errors import AccountSuspended, BadRequest
from .controls import has_controls
from .shapes import Time, is_id
from .texts import lateness
from .undo import Undo

Reason = Literal["name", "avatar", "cheating", "spam", "takeover", "request", "legal", "other"]

Kind = Literal["names", "avatars", "players", "entries", "replays"]  # of the review lists

REASONS: tuple[Reason, ...] = get_args(Reason)
NOTE_MAX = 500  # code points
MESSAGE_MAX = 200
MANY = 100  # players in one request
KEPT_DAYS = 400  # of the numbers of days, today included

CODE_DIGITS = 26  # 130 bits
CODE_LIFETIME = timedelta(minutes=15)
SESSION_LIFETIME = timedelta(hours=12)
SESSION_IDLE = timedelta(hours=1)
COOKIE = "solisync-admin"

AdminName = Annotated[str, Meta(description="lower case letters, digits, `_.-`; at most 32", examples=["ann"])]
Until = Annotated[Time, Meta(description="the end of the suspension; null: until further notice")]
Message = Annotated[str, Meta(description=f"message to the player, 1 to {MESSAGE_MAX} code points")]
PageLink = Annotated[
    str | None,
    Meta(description="the page for players, whole if `SOLISYNC_SITE_URL` is set, else its path; null if there is none"),
]
Note = Annotated[str, Meta(description=f"1 to {NOTE_MAX} code points; the player gets it with an export")]

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}", re.ASCII)


class AdminSession(Struct, frozen=True):
    """A session of an admin, which ends at `expires_at`, or an hour after its last use.

    `used_at` may be a minute late.
    """

    id: str
    admin: AdminName
    begun_at: datetime
    used_at: datetime
    expires_at: datetime
    client: Annotated[str, Meta(description="the address at the sign-in, or `unix`")]
    user_agent: str | None


class Admin(Struct, frozen=True):
    """An admin, with the number of live sessions and their last use."""

    name: AdminName
    added_at: datetime
    sessions: int
    used_at: datetime | None


class SignIn(Struct, frozen=True):
    """The name of an admin, and a code from `solisync admins code`."""

    name: AdminName
    code: Annotated[str, Meta(description="case, hyphens and white space don't matter; O is 0, and I and L are 1")]


class SignedIn(Struct, frozen=True):
    """The signed-in admin, and the end of the session."""

    name: AdminName
    until: datetime


class Myself(Struct, frozen=True):
    """An admin, the admin's live sessions, and the id of the session of this request."""

    name: AdminName
    until: datetime
    current: str
    sessions: list[AdminSession]


class PlayerFacts(Struct, frozen=True):
    """A player in numbers, and the measures of operators."""

    username: str
    id: str
    created_at: datetime
    avatar: str | None
    avatar_bytes: int | None
    sessions: int
    replays: int
    replay_bytes: int
    pushed_at: datetime | None
    progress_bytes: int | None
    games_played: int | None
    games_won: int | None
    level: int | None
    on_leaderboard: bool | None
    display_name: str | None
    best_score: int | None
    best_time_secs: int | None
    best_recorded_at: datetime | None
    suspended_since: datetime | None = None
    suspended_until: datetime | None = None
    suspension_message: str | None = None
    locked_since: datetime | None = None
    guest: Annotated[bool, Meta(description="whether the account is a guest, which has no password")] = False
    keyless: Annotated[bool, Meta(description="whether it is a guest that can't sign in again by a key")] = False
    best_verdict: Annotated[
        str | None,
        Meta(
            description="`verified` if a replay proves the best score, else the verdict of the newest replay that"
            " claims it; null without one"
        ),
    ] = None
    best_replay_id: Annotated[str | None, Meta(description="the newest replay that claims the best score")] = None
    page: PageLink = None


class SeenBody(Struct, frozen=True):
    """Items of a review list to mark as seen, or as new again with `seen` false.

    An item is the `event` of its row, a number, or its `id`.
    """

    kind: Kind
    items: Annotated[list[int | str], Meta(max_length=MANY)]
    seen: bool = True

    def __post_init__(self) -> None:
        for place, item in enumerate(self.items):
            if not _is_item(self.kind, item):
                raise ValueError(f"items[{place}]: is not the event or the id of a row")

    @property
    def texts(self) -> list[str]:
        """The items as texts."""
        return [str(item) for item in self.items]


class Acted(Struct, frozen=True, kw_only=True):
    """The request has succeeded; one that changes nothing leaves no act, so it may be repeated."""

    ok: bool = True
    changed: bool
    settled: Annotated[bool, Meta(description="false while lists and boards of a large account follow")] = True
    undo: Annotated[
        Undo | None, Meta(description="reverses what has changed; null if nothing has, or no act reverses it")
    ] = None


def _is_item(kind: str, item: int | str) -> bool:
    if isinstance(item, int):
        return kind not in ("entries", "replays") and 0 < item < 2**63
    player, point, score = item.partition(".")
    if kind == "entries":
        return is_id(player) and score.isdecimal() and score.isascii() and len(score) <= 10
    return kind == "replays" and is_id(player) and not point


def check_admin_name(name: str) -> str:
    """Check an admin's name and return it; raises BadRequest."""
    if not _NAME.fullmatch(name):
        raise BadRequest("bad_field", "an admin's name has 1 to 32 lower case letters, digits, '_', '.' and '-'")
    return name


def new_session_secret() -> str:
    """A new secret for the cookie of a session: 256 random bits, in base64url."""
    return secrets.token_urlsafe(32)


def check_text(text: str, name: str, most: int) -> str:
    """Trim and check a text; raises BadRequest if it is empty or too long, or no text column can store it.

    `name` names the text in the error; `most` is its greatest length in code points.
    """
    text = text.strip()
    if not text or len(text) > most:
        raise BadRequest("bad_field", f"{name} must be 1-{most} characters")
    if has_controls(text.replace("\n", "")):
        raise BadRequest("bad_field", f"{name} must not contain control characters")
    return text


def check_suspension(until: datetime | None, message: str | None, now: datetime) -> str | None:
    """Check the end and the message of a suspension, and return the message; raises BadRequest if either is wrong."""
    if until is not None and not now < until:
        raise BadRequest("bad_field", "until must be in the future")
    return None if message is None else check_text(message, "message", MESSAGE_MAX)


def suspension_error(until: datetime | None, message: str | None, behind: int) -> AccountSuspended:
    """The error for a suspended player: the end, while the retention clock is `behind`, and the operator's message."""
    ends = "" if until is None else f" until {until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC{lateness(behind)}"
    return AccountSuspended(f"this account is suspended{ends}" + (f": {message}" if message else ""), until)
