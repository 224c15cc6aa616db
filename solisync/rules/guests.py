"""Guests, which are accounts without a password: message shapes, and merging (docs/protocol.md "Guests")."""

from base64 import b32encode
from datetime import datetime
from secrets import token_bytes

from msgspec import Struct, structs

from .counting import counts_of, sum_of, with_counts
from .merge import merge
from .shapes import NIL
from .sync import Document, SyncConflict

QUOTA_BYTES = 4 * 2**20  # of a guest's replays


class GuestRequest(Struct, frozen=True):
    """A guest needs nothing."""


class JoinRequest(Struct, frozen=True):
    """The refresh token of the guest whose games the player takes over."""

    guest_refresh_token: str


def new_username() -> str:
    """A username for a guest, with 60 random bits."""
    return "guest_" + b32encode(token_bytes(8)).decode("ascii").lower()[:12]


def joined(guest: Document, stored: Document | None, player: str, now: datetime) -> tuple[Document, list[SyncConflict]]:
    """Merge a guest's progress into the player's; return it and the conflicts.

    Their games are different, and so add up.
    """
    owner = guest.payload.user_id if guest.payload.user_id == NIL else player
    pushed = structs.replace(guest.payload, user_id=stored.payload.user_id if stored else owner)
    merged, conflicts = merge(guest._replace(payload=pushed), stored, now)
    if stored is not None:
        merged = with_counts(merged, sum_of(counts_of(stored.payload), counts_of(guest.payload)))
    return merged, conflicts
