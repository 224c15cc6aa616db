"""Which hosts the console may be asked under, and shapes of signing in (docs/console.md "Signing in")."""

from collections.abc import Sequence
from datetime import datetime
from ipaddress import ip_address
from typing import Annotated

from msgspec import Meta, Struct

from .admins import AdminName, AdminSession

COOKIE = "solisync-admin"
LOOPBACK_NAMES = frozenset({"localhost", "solisync.localhost"})


class SignIn(Struct, frozen=True):
    """The name of an admin, and a code that `solisync admins code` has made."""

    name: AdminName
    code: Annotated[str, Meta(description="case, hyphens and white space don't matter; O is 0, and I and L are 1")]


class SignedIn(Struct, frozen=True):
    """Who has signed in, and when the session ends."""

    name: AdminName
    until: datetime


class Myself(Struct, frozen=True):
    """An admin, the live sessions of that admin, and the id of the one that asks."""

    name: AdminName
    until: datetime
    current: str
    sessions: list[AdminSession]


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
    """Whether a host is a name of this machine that no server of names decides, or a loopback address."""
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
