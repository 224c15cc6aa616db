"""Tokens of players and sessions that a test has made up."""

from uuid import uuid4

from solisync.access.tokens import Tokens, access_expiry, refresh_expiry
from solisync.rules.sessions import RefreshRecord
from tests.harness.constants import SECRET

OURS = SECRET.encode()


def token_pair(user, jti, now, secret=OURS):
    """The tokens that a service with this secret issues at this time, for a record of this id."""
    record = RefreshRecord(jti, refresh_expiry(now), access_expiry(now), None)
    return Tokens(secret).pair(user, record, access_expiry(now))


def access_token(user, now, secret=OURS):
    """An access token of no session that there is."""
    return token_pair(user, str(uuid4()), now, secret).access_token


def refresh_token(user, jti, now, secret=OURS):
    """A refresh token for a record of this id."""
    return token_pair(user, jti, now, secret).refresh_token
