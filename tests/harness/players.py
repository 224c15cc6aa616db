"""Players without registrations: rows in the database, and matching tokens."""

from datetime import UTC, datetime
from uuid import uuid4

from solisync.access.tokens import refresh_expiry
from tests.harness.postgres import connect
from tests.harness.tokens import token_pair


def players(dsn, count):
    """Store players with one live session each; return (id, refresh token, access token) of each."""
    now = datetime.now(UTC)
    made = [(str(uuid4()), str(uuid4())) for _ in range(count)]
    connection = connect(dsn)
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO users (id, username, password_hash, created_at) VALUES (%s, %s, 'none', now())",
            [(user, f"player{number}") for number, (user, _) in enumerate(made)],
        )
        cursor.executemany(
            "INSERT INTO refresh_tokens VALUES (%s, %s, %s)", [(jti, user, refresh_expiry(now)) for user, jti in made]
        )
    connection.close()
    pairs = [(user, token_pair(user, jti, now)) for user, jti in made]
    return [(user, pair.refresh_token, pair.access_token) for user, pair in pairs]
