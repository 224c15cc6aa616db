"""Lost passwords: message shapes, recovery codes and reset tokens (docs/protocol.md "Lost passwords").

A recovery code has 80 random bits, a reset token 256: too random to be guessed from a plain digest.
"""

import secrets
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct

from .codes import new_code

CODES = 8
RESET_LIFETIME = timedelta(hours=1)
CODE_DIGITS = 16

NewPassword = Annotated[str, Meta(description="8 to 1024 bytes of UTF-8", examples=["another horse"])]


class CodesRequest(Struct, frozen=True):
    """The password to verify before recovery codes are made."""

    current_password: str


class RecoveryCodes(Struct, frozen=True):
    """New recovery codes, which are shown this once, and the time when they were made."""

    codes: list[str]
    created_at: datetime


class CodesLeft(Struct, frozen=True):
    """How many recovery codes a player has, and when they were made."""

    left: int
    created_at: Annotated[datetime | None, Meta(description="null without any")]


class Recovery(Struct, frozen=True):
    """A recovery code of a player, and the new password. The username is trimmed."""

    username: Annotated[str, Meta(examples=["ann"])]
    code: Annotated[str, Meta(description="case, hyphens and white space don't matter; O is 0, and I and L are 1")]
    new_password: NewPassword


class Reset(Struct, frozen=True):
    """The token of a reset link, and the new password."""

    token: Annotated[str, Meta(description="what follows # in the link")]
    new_password: NewPassword


def new_codes() -> list[str]:
    """Random recovery codes, in groups, such as 7K3M-0QWE-RTYP-2S4D."""
    return [new_code(CODE_DIGITS) for _ in range(CODES)]


def new_reset_token() -> str:
    """A random reset token, in base64url."""
    return secrets.token_urlsafe(32)


def reset_path(token: str) -> str:
    """The page of a reset link. What follows # is sent to no server, and so no log has it."""
    return f"/reset#{token}"
