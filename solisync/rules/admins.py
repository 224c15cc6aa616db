"""Admins: names, codes, and the shapes of admins and their sessions (docs/administration.md "Admins")."""

import re
import secrets
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct

from ..errors import BadRequest

CODE_DIGITS = 26  # 130 bits
CODE_LIFETIME = timedelta(minutes=15)
SESSION_LIFETIME = timedelta(hours=12)
SESSION_IDLE = timedelta(hours=1)

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}", re.ASCII)

AdminName = Annotated[str, Meta(description="lower case letters, digits, `_.-`; at most 32", examples=["ann"])]


class AdminSession(Struct, frozen=True, kw_only=True):
    """A session of an admin, which ends at `expires_at`, or an hour after its last use.

    `used_at` is at most a minute old.
    """

    id: str
    admin: AdminName
    begun_at: datetime
    used_at: datetime
    expires_at: datetime
    client: Annotated[str, Meta(description="the address from which it was begun, or `unix`")]
    user_agent: str | None


class Admin(Struct, frozen=True, kw_only=True):
    """Somebody who may sign in, with the number of live sessions and the last use of these."""

    name: AdminName
    added_at: datetime
    sessions: int
    used_at: datetime | None


def check_admin_name(name: str) -> str:
    """The name; raises BadRequest unless it is one that an admin can have."""
    if not _NAME.fullmatch(name):
        raise BadRequest("bad_field", "an admin's name has 1 to 32 lower case letters, digits, '_', '.' and '-'")
    return name


def new_session_secret() -> str:
    """What the cookie of a session holds: 256 random bits, in base64url."""
    return secrets.token_urlsafe(32)
