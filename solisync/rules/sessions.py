"""Sessions: message shapes, and the stored record (docs/protocol.md "Sessions")."""

import unicodedata
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple, Self

from msgspec import Meta, Struct

from .shapes import Id

ACCESS_LIFETIME = timedelta(hours=24)
REFRESH_LIFETIME = timedelta(days=30)
USER_AGENT_LENGTH = 200


class Session(Struct, frozen=True):
    """A session; `used_at` is the time of its login or last refresh."""

    id: Id
    begun_at: datetime
    used_at: datetime
    expires_at: Annotated[datetime, Meta(description="the end of the session, unless it is refreshed before")]
    user_agent: Annotated[str | None, Meta(description="`User-Agent` at the last use, at most 200 characters")]
    current: Annotated[
        bool, Meta(description="whether this request has the session's newest access token, or the one before")
    ]


class PasswordChange(Struct, frozen=True):
    """The current password and the new one."""

    current_password: str
    new_password: Annotated[str, Meta(description="8 to 1024 bytes of UTF-8")]


class RefreshRecord(NamedTuple):
    """The stored record of a new pair of tokens: the row of its refresh token.

    `access_expiry` is the `exp` wanted for the access token, in seconds since 1970. Storing the record may choose an
    earlier one, because no two access tokens of a player have the same `exp`. `retry_digest` identifies the request,
    if it may be repeated.
    """

    jti: str
    expires: datetime
    access_expiry: int
    user_agent: str | None
    retry_digest: bytes | None = None

    def issued(self, expiry: int) -> Self:
        """The record with the `exp` that storing it has chosen."""
        return self._replace(access_expiry=expiry)


class SessionRef(NamedTuple):
    """The session that an access token names: its player, and the token's `exp`, in seconds since 1970.

    No two access tokens of a player have the same. A session is named by its newest token and the one before; a token
    may also name no session.
    """

    user_id: str
    expiry: int


def user_agent(header: str | None) -> str | None:
    """The readable name of a client: the header User-Agent, decoded as UTF-8 or else Latin-1, and shortened."""
    if header is None:
        return None
    if header.isascii() and header.isprintable():
        return header[:USER_AGENT_LENGTH] or None
    with suppress(UnicodeDecodeError):  # bytes that aren't UTF-8 stay Latin-1
        header = header.encode("latin-1").decode()
    text = "".join(character for character in header if unicodedata.category(character) != "Cc")
    return text[:USER_AGENT_LENGTH] or None
