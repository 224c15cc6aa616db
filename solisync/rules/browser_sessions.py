"""Sessions of browsers: message shapes, and the name of the cookie (docs/protocol.md "Sessions of browsers")."""

from typing import Annotated

from msgspec import Meta, Struct

from .accounts import AuthRequest

COOKIE = "solisync"  # it holds the refresh token


class BrowserLogin(AuthRequest, frozen=True):
    """A player's credentials, those of a new player perhaps."""

    register: Annotated[bool, Meta(description="create the account")] = False


class BrowserSession(Struct, frozen=True):
    """What a page may know of its session; the refresh token is in the cookie."""

    access_token: Annotated[str, Meta(description="JWT, valid for 24 hours")]
    username: str
