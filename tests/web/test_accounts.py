"""Accounts over HTTP: registering, the profile, deletion (docs/protocol.md "Sessions" and "The player")."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.harness.constants import PASSWORD
from tests.harness.service import refused
from tests.harness.tokens import access_token


async def test_new_player_can_read_its_profile(server):
    """Registering returns a pair of tokens that work immediately."""
    client = await server.player("ann")
    me = await client.me()
    assert (me.username, me.avatar_url) == ("ann", None)
    assert await client.refresh()


@pytest.mark.parametrize(
    ("username", "password", "message"),
    [
        ("ab", PASSWORD, "username must be 3-32 characters"),
        ("  ab  ", PASSWORD, "username must be 3-32 characters"),
        ("a" * 33, PASSWORD, "username must be 3-32 characters"),
        ("a b c", PASSWORD, "username may only contain letters, digits and underscores"),
        ("anné", PASSWORD, "username may only contain letters, digits and underscores"),
        ("an\0n", PASSWORD, "username may only contain letters, digits and underscores"),
        ("ab", "short", "username must be 3-32 characters"),
        ("ann", "1234567", "password must be at least 8 characters"),
        ("ann", "x" * 1025, "password must be at most 1024 bytes"),
    ],
)
async def test_register_names_the_first_rule_that_is_broken(server, username, password, message):
    """The service checks the username's length, then its characters, then the password."""
    assert await refused(server.client().register(username, password)) == (400, message)


@pytest.mark.parametrize("password", ["12345678", "ä" * 4, "x" * 1024, "nul\0nul\0", " " * 8, "x" * 73])
async def test_password_at_the_bounds_is_kept_unchanged(server, password):
    """Each password registers and logs in; the same password with one more space doesn't log in."""
    await server.client().register("ann", password)
    assert await server.client().login("ann", password)
    assert await refused(server.client().login("ann", password + " ")) == (401, "invalid credentials")


async def test_taken_username_is_refused(server):
    """A second account with the same username is a conflict, with or without spaces around it."""
    await server.player("ann")
    assert await refused(server.client().register(" ann ", PASSWORD)) == (409, "username already taken")


async def test_usernames_are_case_sensitive(server):
    await server.player("ann")
    await server.player("Ann")
    assert server.sql("SELECT username FROM users ORDER BY 1") == [("Ann",), ("ann",)]


async def test_new_player_is_stored_with_a_password_hash_and_a_refresh_record(server):
    """The database has a bcrypt hash, never the password. The refresh record expires in 30 days."""
    await server.player("ann")
    ((password_hash,),) = server.sql("SELECT password_hash FROM users")
    ((expires_at,),) = server.sql("SELECT expires_at FROM refresh_tokens")
    assert password_hash.startswith("$2b$")
    assert abs(expires_at - datetime.now(UTC) - timedelta(days=30)) < timedelta(minutes=1)


async def test_account_without_a_username_is_unauthorized(server):
    """Manual SQL is the only way to store a null username."""
    client = await server.player("ann")
    server.sql("ALTER TABLE users ALTER username DROP NOT NULL")
    try:
        server.sql("UPDATE users SET username = NULL")
        assert await refused(client.me()) == (401, "unauthorized")
    finally:
        server.sql("DELETE FROM users")
        server.sql("ALTER TABLE users ALTER username SET NOT NULL")


@pytest.mark.parametrize(
    "header",
    [
        [],
        [""],
        ["Bearer"],
        ["Bearer "],
        ["Basic {access}"],
        ["{access}"],
        ["Bearer {refresh}"],
        ["Bearer {access}x"],
        ["Bearer {access}="],
        ["Bearer {access} x"],
        ["Bearer {access}", "Bearer {access}"],
        ["Token Bearer {access}"],
        ["Bearer {expired}"],
    ],
)
async def test_route_needs_exactly_one_valid_access_token(server, header):
    """A missing, malformed, doubled, expired or refresh token gets a 401 with the same text."""
    client = await server.player("ann")
    me = await client.me()
    tokens = {
        "access": client.tokens.access_token,
        "refresh": client.tokens.refresh_token,
        "expired": access_token(me.id, datetime.now(UTC) - timedelta(hours=24, seconds=1)),
    }
    values = [value.format(**tokens) for value in header]
    for method, path in (("GET", "/api/me"), ("DELETE", "/api/account")):
        answer = await server.ask(method, path, {"Authorization": values} if values else {})
        assert (answer.status, answer.json) == (401, {"error": "unauthorized"})


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer  "])
async def test_scheme_is_read_in_any_case(server, scheme):
    """`Bearer` is case-insensitive and may be followed by several spaces."""
    client = await server.player("ann")
    answer = await server.ask("GET", "/api/me", {"Authorization": f"{scheme} {client.tokens.access_token}"})
    assert answer.status == 200
