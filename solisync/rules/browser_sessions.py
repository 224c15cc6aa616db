"""Sessions of browsers: message shapes, and the cookie that holds the refresh token.

See docs/protocol.md "Sessions of browsers".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from .accounts import AuthRequest
from .sessions import REFRESH_LIFETIME


class BrowserLogin(AuthRequest, frozen=True):
    """A player's credentials, those of a new player perhaps."""

    register: Annotated[bool, Meta(description="create the account")] = False


class BrowserSession(Struct, frozen=True):
    """What a page may know of its session; the refresh token is in the cookie."""

    access_token: Annotated[str, Meta(description="JWT, valid for 24 hours")]
    username: str


@dataclass(frozen=True, slots=True)
class SessionCookie:
    """The cookie of a browser, and the refresh token in it, which may be anything; None without one.

    Only a page that came over HTTPS can set a cookie whose name begins with __Host-, and only for its own host.
    """

    secure: bool
    token: str | None

    @classmethod
    def read(cls, lines: Sequence[str], *, secure: bool) -> "SessionCookie":
        """The cookie in these lines of the header Cookie. Of two with its name, either may be forged."""
        name = _name(secure)
        pairs = (pair.strip(" \t").partition("=") for line in lines for pair in line.split(";"))
        values = [value for found, equals, value in pairs if equals and found == name]
        return cls(secure, values[0] if len(values) == 1 else None)

    def holding(self, token: str) -> str:
        """The value of Set-Cookie that puts this refresh token in its place."""
        return self._set(token, int(REFRESH_LIFETIME.total_seconds()))

    @property
    def cleared(self) -> str:
        """The value of Set-Cookie that takes it away."""
        return self._set("", 0)

    def _set(self, value: str, seconds: int) -> str:
        secure = "; Secure" if self.secure else ""
        return f"{_name(self.secure)}={value}; Max-Age={seconds}; Path=/{secure}; HttpOnly; SameSite=Strict"


def _name(secure: bool) -> str:
    return "__Host-solisync" if secure else "solisync"
