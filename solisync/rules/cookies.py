"""The cookie of a session, of a player's browser or of an admin's."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class SessionCookie:
    """A cookie with a secret in it, which may be anything; None without one.

    Only a page that came over HTTPS can set a cookie whose name begins with __Host-, and only for its own host.
    """

    name: str
    lifetime: timedelta
    token: str | None

    @classmethod
    def read(cls, name: str, lifetime: timedelta, lines: Sequence[str], *, secure: bool) -> "SessionCookie":
        """The cookie in these lines of the header Cookie. Of two with its name, either may be forged."""
        if secure:
            name = f"__Host-{name}"
        pairs = (pair.strip(" \t").partition("=") for line in lines for pair in line.split(";"))
        values = [value for found, equals, value in pairs if equals and found == name]
        return cls(name, lifetime, values[0] if len(values) == 1 else None)

    def holding(self, token: str) -> str:
        """The value of Set-Cookie that puts this secret in its place."""
        return self._set(token, int(self.lifetime.total_seconds()))

    @property
    def cleared(self) -> str:
        """The value of Set-Cookie that takes it away."""
        return self._set("", 0)

    def _set(self, value: str, seconds: int) -> str:
        secure = "; Secure" if self.name.startswith("__Host-") else ""
        return f"{self.name}={value}; Max-Age={seconds}; Path=/{secure}; HttpOnly; SameSite=Strict"
