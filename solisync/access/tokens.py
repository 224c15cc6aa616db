"""Access and refresh tokens: JWTs signed with HS256 (RFC 7519; docs/security.md "Tokens and sessions").

No other module imports PyJWT. PyJWT compares `exp` with the wall clock. Here the time is an argument, so this module
checks expiry itself.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest
from typing import Any
from uuid import UUID, uuid4

import jwt
import msgspec
from jwt.algorithms import HMACAlgorithm
from msgspec import structs

from ..errors import Unauthorized
from ..rules.accounts import Identity, TokenPair
from ..rules.sessions import ACCESS_LIFETIME, REFRESH_LIFETIME, RefreshRecord, SessionRef
from ..rules.shapes import is_id

REMEMBERED = 16_384  # access tokens, at well under a kilobyte each
TOKEN_MAX = 1_024  # in characters; tokens of this service have about 250
EXPIRY_MAX = 253_402_300_799  # the last second of the year 9999, as far as times reach

_ALGORITHM = "HS256"
_HMAC = HMACAlgorithm(sha256)
_HEADER = jwt.encode({}, bytes(32), _ALGORITHM).partition(".")[0] + "."
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
# Python's base64 ignores padding, white space and the last two bits. Without this check a token would have many
# spellings, and the cache would keep each of them.
_SPELLING = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")
_SIGNATURE_ONLY = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


@dataclass(frozen=True, slots=True)
class RefreshClaims:
    """The claims of a valid refresh token: its player, and the id of its record in the database."""

    user_id: str
    jti: str


class Tokens:
    """Issues tokens signed with `secret`, and verifies tokens signed with `secret` or `previous`.

    `new_id` makes the ids of refresh tokens.
    """

    def __init__(
        self, secret: bytes, *, previous: bytes | None = None, new_id: Callable[[], str] = lambda: str(uuid4())
    ) -> None:
        self._accepted = (secret,) if previous is None else (secret, previous)
        self._new_id = new_id
        # Fast path: verifying the signature of an access token at each request, 62 of 253 µs at GET /api/me, see
        # docs/performance.md. That a token is valid is never remembered: it depends on the time.
        self._read_access = lru_cache(REMEMBERED)(self._verify_access)

    def record(self, now: datetime, user_agent: str | None, retry_digest: bytes | None = None) -> RefreshRecord:
        """Return the record to store before issuing a pair of tokens to a client with this `user_agent`."""
        return RefreshRecord(self._new_id(), refresh_expiry(now), access_expiry(now), user_agent, retry_digest)

    @staticmethod
    def retry_digest(about: str, retry_key: str | None) -> bytes | None:
        """Return the stored form of the retry key of a request about this, or None if there is no key."""
        return None if retry_key is None else sha256(f"{about} {retry_key}".encode()).digest()

    def pair(self, user_id: str, record: RefreshRecord) -> TokenPair:
        """Return the tokens of a record, whose `access_expiry` is the one that storing it chose."""
        return TokenPair(
            self._sign({"sub": user_id, "exp": record.access_expiry, "kind": "access"}),
            self._sign({"sub": user_id, "exp": _seconds(record.expires), "kind": "refresh", "jti": record.jti}),
        )

    def signed_in(self, player: Identity, record: RefreshRecord) -> TokenPair:
        """Like `pair`, with the player if the request may be repeated."""
        pair = self.pair(player.id, record)
        return pair if record.retry_digest is None else structs.replace(pair, player=player)

    def read_access(self, token: str, now: datetime) -> SessionRef:
        """Return the claims of a valid access token; raise Unauthorized for any other text."""
        claims = self._read_access(token)
        _check_expiry(claims.expiry, now)
        return claims

    def read_refresh(self, token: str, now: datetime) -> RefreshClaims:
        """Return the claims of a valid refresh token; raise Unauthorized for any other text."""
        claims = self._verify(token, "refresh")
        _check_expiry(claims["exp"], now)
        return RefreshClaims(_uuid(claims.get("sub")), _uuid(claims.get("jti")))

    def _sign(self, claims: dict[str, object]) -> str:
        # Fast path: jwt.encode, which makes the same text, 155,000 instructions, see docs/performance.md
        signed = _HEADER + urlsafe_b64encode(_encode(claims)).rstrip(b"=").decode("ascii")
        return f"{signed}.{_signature(signed, self._accepted[0])}"

    def _verify_access(self, token: str) -> SessionRef:
        claims = self._verify(token, "access")
        return SessionRef(_uuid(claims.get("sub")), claims["exp"])

    def _verify(self, token: str, kind: str) -> dict[str, Any]:
        if len(token) > TOKEN_MAX or not _SPELLING.fullmatch(token):
            raise Unauthorized
        claims = self._signed(token)
        if type(claims.get("exp")) is not int or claims["exp"] > EXPIRY_MAX or claims.get("kind") != kind:
            raise Unauthorized
        return claims

    def _signed(self, token: str) -> dict[str, Any]:
        """Return the claims of a token that is signed with an accepted secret."""
        claims = self._issued(token)
        if claims is not None:
            return claims
        for secret in self._accepted:
            try:
                return jwt.decode(token, secret, [_ALGORITHM], options=_SIGNATURE_ONLY)  # type: ignore[arg-type]
            except jwt.InvalidSignatureError:
                continue
            except (jwt.InvalidTokenError, UnicodeError, RecursionError, ValueError):
                break
        raise Unauthorized

    def _issued(self, token: str) -> dict[str, Any] | None:
        """Like `_signed` for a token that begins with our header; return None if PyJWT must decide.

        Fast path: replaces jwt.decode for nearly all tokens, 320,000 instructions, see docs/performance.md.
        """
        if not token.startswith(_HEADER):
            return None
        signed, _, signature = token.rpartition(".")
        if not any(compare_digest(signature, _signature(signed, secret)) for secret in self._accepted):
            return None
        try:
            return _decode(urlsafe_b64decode(signed[len(_HEADER) :] + "=="))
        except (ValueError, RecursionError):  # also for text that json.loads accepts but msgspec doesn't, such as NaN
            return None


def can_sign(secret: bytes) -> bool:
    """Whether PyJWT accepts this as a secret: it refuses a public key, a certificate and a JWK."""
    try:
        _HMAC.prepare_key(secret)
    except jwt.InvalidKeyError:
        return False
    return True


def _signature(signed: str, secret: bytes) -> str:
    return urlsafe_b64encode(_HMAC.sign(signed.encode("ascii"), secret)).rstrip(b"=").decode("ascii")


def _check_expiry(expires: int, now: datetime) -> None:
    if expires <= now.timestamp():  # RFC 7519 §4.1.4: refused on or after exp, without leeway
        raise Unauthorized


def access_expiry(now: datetime) -> int:
    """`exp` of an access token issued at `now`, unless another one of the player ends in the same second."""
    return _seconds(now + ACCESS_LIFETIME)


def refresh_expiry(now: datetime) -> datetime:
    """The expiry of a refresh token issued at `now`, in whole seconds as in its `exp`."""
    return (now + REFRESH_LIFETIME).replace(microsecond=0)


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _uuid(claim: object) -> str:
    if isinstance(claim, str) and is_id(claim):  # as in all tokens of this service
        return claim
    try:
        return str(UUID(claim))  # type: ignore[arg-type]
    except (ValueError, TypeError, AttributeError):
        raise Unauthorized from None
