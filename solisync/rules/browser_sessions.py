"""Sessions of browsers: message shapes, the cookie, and a check of which requests may use it.

Browsers send cookies even with requests that other sites cause. So every route that reads the cookie first asks
`is_same_origin`. No page can set Host, Origin or Sec-Fetch-Site. A page needs permission to send JSON to another
origin, which these routes never give. See docs/protocol.md "Sessions of browsers", docs/security.md "Logins of
browsers".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from typing import Annotated

from msgspec import UNSET, Meta, Struct

from .accounts import AuthRequest, PlayerOfKey, Repeatable

COOKIE = "solisync"  # it holds the refresh token
LOOPBACK_NAMES = frozenset({"localhost", "solisync.localhost"})

_ORIGIN = re.compile(r"(https?)://([^/?#@\s]+)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^:@\[\]\s]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


class BrowserLogin(AuthRequest, frozen=True):
    """A player's credentials, or with `register` a new player's."""

    register: Annotated[bool, Meta(description="whether to create the account first")] = False


class BrowserRefresh(Repeatable, frozen=True):
    """A refresh by a page, whose refresh token is in the cookie."""


class BrowserSession(Struct, frozen=True):
    """The session of a page; the refresh token is in the cookie."""

    access_token: Annotated[str, Meta(description="JWT, valid for 24 hours")]
    username: str
    player: PlayerOfKey = UNSET


@dataclass(frozen=True, slots=True)
class SessionCookie:
    """A cookie that holds a secret; the secret is unchecked text, or None without a cookie.

    The name begins with __Host- for pages over HTTPS: only such a page can set that cookie, and only for its own host.
    """

    name: str
    lifetime: timedelta
    token: str | None

    @classmethod
    def read(cls, name: str, lifetime: timedelta, lines: Sequence[str], *, secure: bool) -> "SessionCookie":
        """Read the cookie from these lines of the header Cookie; of two with its name, either may be forged."""
        if secure:
            name = f"__Host-{name}"
        pairs = (pair.strip(" \t").partition("=") for line in lines for pair in line.split(";"))
        values = [value for found, equals, value in pairs if equals and found == name]
        return cls(name, lifetime, values[0] if len(values) == 1 else None)

    def holding(self, token: str) -> str:
        """The value of Set-Cookie that stores this secret."""
        return self._set(token, int(self.lifetime.total_seconds()))

    @property
    def cleared(self) -> str:
        """The value of Set-Cookie that removes the cookie."""
        return self._set("", 0)

    def _set(self, value: str, seconds: int) -> str:
        secure = "; Secure" if self.name.startswith("__Host-") else ""
        return f"{self.name}={value}; Max-Age={seconds}; Path=/{secure}; HttpOnly; SameSite=Strict"


def is_same_origin(
    *, content_types: Sequence[str], hosts: Sequence[str], origins: Sequence[str], fetch_sites: Sequence[str]
) -> bool:
    """Return whether only a page of this service can have sent these Content-Type, Host, Origin and Sec-Fetch-Site.

    The scheme of Origin is not compared, because the service doesn't know whether a proxy in front of it speaks TLS.
    """
    if len(content_types) != 1 or content_types[0].partition(";")[0].strip(" \t").lower() != "application/json":
        return False
    if fetch_sites and list(fetch_sites) != ["same-origin"]:
        return False
    if not origins:
        return bool(fetch_sites)
    return len(origins) == len(hosts) == 1 and _leads_to(origins[0], hosts[0])


def is_secure(origins: Sequence[str]) -> bool:
    """Return whether the browser loaded the page over HTTPS, according to its Origin."""
    return len(origins) == 1 and origins[0].lower().startswith("https://")


def host_of(lines: Sequence[str]) -> str | None:
    """The host in the header Host, without its port, in lower case; None unless there is exactly one."""
    if len(lines) != 1:
        return None
    host = lines[0].strip(" \t").lower()
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        return name if bracket and (not port or port.startswith(":")) else None
    name, _, port = host.partition(":")
    return name if not port or port.isdecimal() else None


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address, or a name that always means this machine, whatever DNS returns."""
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _leads_to(origin: str, host: str) -> bool:
    match = _ORIGIN.fullmatch(origin)
    if match is None:
        return False
    port = _PORTS[match[1].lower()]
    wanted = _host_and_port(match[2], port)
    return wanted is not None and wanted == _host_and_port(host, port)


def _host_and_port(authority: str, default_port: int) -> tuple[str, int] | None:
    match = _AUTHORITY.fullmatch(authority)
    return match and (match[1].lower(), int(match[2] or default_port))
