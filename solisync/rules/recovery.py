"""Lost passwords: message shapes, recovery codes and reset tokens (docs/protocol.md "Lost passwords").

A recovery code has 80 random bits, and a reset token 256. These are too random to be guessed from a plain digest.
Players type codes, whose digits are from Crockford's base 32 (https://www.crockford.com/base32.html): it has no I, L, O
and U, and each digit has five bits.
"""

import re
import secrets
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct

CODES = 8
RESET_LIFETIME = timedelta(hours=1)
CODE_DIGITS = 16

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_GROUP = 4
_LONGEST = 100  # characters, including separators
_READ_AS = str.maketrans("oOiIlL", "001111")
_BETWEEN = re.compile(r"[\s\u2010-\u2015-]+")
_CODE = re.compile(rf"[{_DIGITS}]+", re.ASCII | re.IGNORECASE)

NewPassword = Annotated[str, Meta(description="8 to 1024 bytes of UTF-8", examples=["another horse"])]


class CodesRequest(Struct, frozen=True):
    """The current password, which the server checks first."""

    current_password: str


class RecoveryCodes(Struct, frozen=True):
    """New recovery codes, which no later request returns, and the time when they were made."""

    codes: list[str]
    created_at: datetime


class CodesLeft(Struct, frozen=True):
    """The number of unused recovery codes, and the time when they were made."""

    left: int
    created_at: Annotated[datetime | None, Meta(description="null without codes")]


class Recovery(Struct, frozen=True):
    """A recovery code of a player, and the new password. The username is trimmed."""

    username: Annotated[str, Meta(examples=["ann"])]
    code: Annotated[str, Meta(description="case, hyphens and white space don't matter; O is 0, and I and L are 1")]
    new_password: NewPassword


class Reset(Struct, frozen=True):
    """The token of a reset link, and the new password."""

    token: Annotated[str, Meta(description="the part of the link after #")]
    new_password: NewPassword


def new_code(digits: int) -> str:
    """A random code with this many digits, in groups of four, such as 7K3M-0QWE-RTYP-2S4D."""
    code = "".join(secrets.choice(_DIGITS) for _ in range(digits))
    return "-".join(code[start : start + _GROUP] for start in range(0, digits, _GROUP))


def read_code(text: str, digits: int) -> str | None:
    """The digits of a typed code; None if it can't be a code with this many digits."""
    code = _BETWEEN.sub("", text[:_LONGEST]).translate(_READ_AS)
    return code.upper() if len(code) == digits and _CODE.fullmatch(code) else None


def digest(secret: str) -> bytes:
    """The stored SHA-256 digest of a secret too random to be guessed, or of a code as `read_code` returns it."""
    return sha256(secret.encode()).digest()


def new_codes() -> list[str]:
    """Random recovery codes, in groups, such as 7K3M-0QWE-RTYP-2S4D."""
    return [new_code(CODE_DIGITS) for _ in range(CODES)]


def new_reset_token() -> str:
    """A random reset token, in base64url."""
    return secrets.token_urlsafe(32)


def reset_path(token: str) -> str:
    """The path of a reset link's page; browsers send no server the part after #, so no log has it."""
    return f"/reset#{token}"


def on_site(site_url: str | None, path: str) -> str:
    """A link to a page for players; only the path if the address of the pages isn't set."""
    return f"{site_url or ''}{path}"
