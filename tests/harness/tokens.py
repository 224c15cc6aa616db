"""Tokens of made-up players and sessions."""

from uuid import uuid4

from solisync.access.tokens import Tokens, access_expiry, refresh_expiry
from solisync.rules.sessions import RefreshRecord
from tests.harness.constants import SECRET

OURS = SECRET.encode()


def token_pair(user, jti, now, secret=OURS):
    """The tokens that a service with this secret issues at this time for a record with this id."""
    record = RefreshRecord(jti, refresh_expiry(now), access_expiry(now), None)
    return Tokens(secret).pair(user, record)


def access_token(user, now, secret=OURS):
    """An access token whose session doesn't exist."""
    return token_pair(user, str(uuid4()), now, secret).access_token


def refresh_token(user, jti, now, secret=OURS):
    """A refresh token for a record with this id."""
    return token_pair(user, jti, now, secret).refresh_token
