"""Codes that people type, as digits of Crockford's base 32, which has no I, L, O and U; each digit has five bits.

Source: https://www.crockford.com/base32.html
"""

import re
import secrets
from hashlib import sha256

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_GROUP = 4
_LONGEST = 100  # characters, with all that may stand between the digits
_READ_AS = str.maketrans("oOiIlL", "001111")
_BETWEEN = re.compile(r"[\s\u2010-\u2015-]+")
_CODE = re.compile(rf"[{_DIGITS}]+", re.ASCII | re.IGNORECASE)


def new_code(digits: int) -> str:
    """A random code with so many digits, in groups of four, such as 7K3M-0QWE-RTYP-2S4D."""
    code = "".join(secrets.choice(_DIGITS) for _ in range(digits))
    return "-".join(code[start : start + _GROUP] for start in range(0, digits, _GROUP))


def read_code(text: str, digits: int) -> str | None:
    """The digits of a code as somebody typed it; None when it can't be one with so many digits."""
    code = _BETWEEN.sub("", text[:_LONGEST]).translate(_READ_AS)
    return code.upper() if len(code) == digits and _CODE.fullmatch(code) else None


def digest(secret: str) -> bytes:
    """What is stored of a secret that is too random to be guessed, or of a code as `read_code` returns it: SHA-256."""
    return sha256(secret.encode()).digest()
