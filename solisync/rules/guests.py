"""Guests, which are accounts without a password: message shapes, refusals, and merging (docs/protocol.md "Guests")."""

import re
from base64 import b32encode
from datetime import datetime
from secrets import token_bytes
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from ..errors import Conflict, Forbidden
from .accounts import Password, TokenPair, Username
from .counting import GameCounts, counts_of, sum_of, with_counts
from .merge import merge
from .shapes import NIL
from .sync import Document, SyncConflict

QUOTA_BYTES = 4 * 2**20  # of a guest's replays


_KEY = re.compile("^[A-Za-z0-9_-]{22,64}$")
_KEY_META = Meta(
    description="22-64 letters, digits, _ and -, with at least 128 random bits, made by the device",
    extra_json_schema={"pattern": _KEY.pattern},
)


def _check_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise ValueError("`guest_key` must be 22-64 letters, digits, _ and -")


class GuestRequest(Struct, frozen=True):
    """A guest needs nothing; with a key, its device can sign in again."""

    guest_key: Annotated[str | None, _KEY_META] = None
    create: Annotated[bool, Meta(description="whether to create the guest if it is unknown")] = True

    def __post_init__(self) -> None:
        if self.guest_key is not None:
            _check_key(self.guest_key)
        elif not self.create:
            raise ValueError("`create` needs `guest_key`")


class GuestPair(TokenPair, frozen=True):
    """The tokens of a guest's session."""

    created: Annotated[
        bool | UnsetType, Meta(description="whether this request has created the guest; absent without a key")
    ] = UNSET


class GuestKeyChange(Struct, frozen=True):
    """The new key of a guest; `former_key` is the one that it replaces, if there is one."""

    guest_key: Annotated[str, _KEY_META]
    former_key: str | None = None

    def __post_init__(self) -> None:
        _check_key(self.guest_key)


class ClaimRequest(Struct, frozen=True):
    """The name and the password of a guest who becomes a player."""

    username: Username
    password: Password
    list_replays: Annotated[bool, Meta(description="whether to list the guest's replays publicly")] = False


class JoinRequest(Struct, frozen=True):
    """The refresh token of the guest whose games the player takes over."""

    guest_refresh_token: str


def new_username() -> str:
    """A username for a guest, with 60 random bits."""
    return "guest_" + b32encode(token_bytes(8)).decode("ascii").lower()[:12]


def guest_gone() -> Conflict:
    """The error for a guest that has been claimed, joined or deleted."""
    return Conflict("guest_gone", "this guest is gone")


def not_a_guest() -> Conflict:
    """The error for a player in place of a guest."""
    return Conflict("not_a_guest", "this account is not a guest")


def guest_refused() -> Forbidden:
    """The error for a guest who does what only players may do."""
    return Forbidden("guest", "a guest can't do this")


def joined(
    guest: Document, stored: Document | None, player: str, shared: GameCounts, now: datetime
) -> tuple[Document, list[SyncConflict]]:
    """Merge a guest's progress into the player's; return it and the conflicts.

    Their games add up, except `shared`, the guest's counts of games that the player has too.
    """
    owner = guest.payload.user_id if guest.payload.user_id == NIL else player
    pushed = structs.replace(guest.payload, user_id=stored.payload.user_id if stored else owner)
    merged, conflicts = merge(guest._replace(payload=pushed), stored, now)
    if stored is not None:
        merged = with_counts(merged, sum_of(counts_of(stored.payload), counts_of(guest.payload).without(shared)))
    return merged, conflicts
