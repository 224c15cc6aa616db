"""Lost passwords: message shapes, recovery codes and reset tokens (docs/protocol.md "Lost passwords").

A recovery code has 80 random bits, as 16 digits of Crockford's base 32 (https://www.crockford.com/base32.html), which
has no I, L, O and U. A reset token has 256 random bits. Both are too random to be guessed from a plain digest.
"""

import re
import secrets
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct

CODES = 8
RESET_LIFETIME = timedelta(hours=1)

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_GROUPS = 4
_GROUP = 4
_LONGEST = 100  # characters, with all that may stand between the digits
_READ_AS = str.maketrans("oOiIlL", "001111")
_BETWEEN = re.compile(r"[\s\u2010-\u2015-]+")
_CODE = re.compile(rf"[{_DIGITS}]{{{_GROUPS * _GROUP}}}", re.ASCII | re.IGNORECASE)

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
    return ["-".join(_random_group() for _ in range(_GROUPS)) for _ in range(CODES)]


def _random_group() -> str:
    return "".join(secrets.choice(_DIGITS) for _ in range(_GROUP))


def read_code(text: str) -> str | None:
    """The digits of a recovery code as somebody typed it; None when it can't be one."""
    code = _BETWEEN.sub("", text[:_LONGEST]).translate(_READ_AS)
    return code.upper() if _CODE.fullmatch(code) else None


def new_reset_token() -> str:
    """A random reset token, in base64url."""
    return secrets.token_urlsafe(32)


def reset_path(token: str) -> str:
    """The page of a reset link. What follows # is sent to no server, and so no log has it."""
    return f"/reset#{token}"


def digest(secret: str) -> bytes:
    """What is stored of a reset token, or of a recovery code as `read_code` returns it: the SHA-256."""
    return sha256(secret.encode()).digest()
