"""Accounts over HTTP: register, me, delete (docs/protocol.md "Sessions" and "The player")."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tests.harness.constants import PASSWORD
from tests.harness.service import refused
from tests.harness.tokens import access_token


async def test_a_new_player_can_see_themselves(server):
    """Register answers with a pair of tokens that work at once."""
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
    """Register checks the username's length, its characters, then the password."""
    assert await refused(server.client().register(username, password)) == (400, message)


@pytest.mark.parametrize("password", ["12345678", "ä" * 4, "x" * 1024, "nul\0nul\0", " " * 8, "x" * 73])
async def test_a_password_at_the_bounds_is_kept_as_it_is(server, password):
    """Eight bytes, 1,024, multi-byte text, NUL and spaces: each registers and logs in, and its neighbour does not."""
    await server.client().register("ann", password)
    assert await server.client().login("ann", password)
    assert await refused(server.client().login("ann", password + " ")) == (401, "invalid credentials")


async def test_a_taken_name_is_refused_before_it_is_hashed(server):
    """A second account of the same name, spaces around it or not, is a conflict."""
    await server.player("ann")
    assert await refused(server.client().register(" ann ", PASSWORD)) == (409, "username already taken")


async def test_names_differ_by_case(server):
    """Usernames are case-sensitive."""
    await server.player("ann")
    await server.player("Ann")
    assert server.sql("SELECT username FROM users ORDER BY 1") == [("Ann",), ("ann",)]


async def test_what_is_stored_of_a_new_player(server):
    """A bcrypt hash, never the password; and a refresh record that expires in 30 days."""
    await server.player("ann")
    ((password_hash,),) = server.sql("SELECT password_hash FROM users")
    ((expires_at,),) = server.sql("SELECT expires_at FROM refresh_tokens")
    assert password_hash.startswith("$2b$")
    assert abs(expires_at - datetime.now(UTC) - timedelta(days=30)) < timedelta(minutes=1)


async def test_a_deleted_player_is_gone_with_all_sessions(server):
    """Delete removes the row and its refresh records, answers again the same, and frees the name."""
    client = await server.player("ann")
    tokens = client.tokens
    assert (await client.delete_account()).ok
    assert server.sql("SELECT count(*) FROM users") == [(0,)]
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(0,)]
    client.tokens = tokens
    assert (await client.delete_account()).ok
    client.tokens = tokens
    assert await refused(client.me()) == (404, "user not found")
    assert await refused(client.refresh()) == (401, "unauthorized")
    await server.player("ann")


async def test_an_account_without_a_name_is_unauthorized(server):
    """A null username, which only a hand could have put there, is a 401."""
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
async def test_nothing_but_one_access_token_opens_a_route(server, header):
    """A missing, malformed, doubled, expired or refresh token is a 401 with the same text."""
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
async def test_the_scheme_is_read_in_any_case(server, scheme):
    """`Bearer` is case-insensitive and may be followed by several spaces."""
    client = await server.player("ann")
    answer = await server.ask("GET", "/api/me", {"Authorization": f"{scheme} {client.tokens.access_token}"})
    assert answer.status == 200


async def test_a_token_of_a_player_who_never_was(server):
    """A valid token of nobody is a 404 where the row is needed and a 200 where it is not."""
    token = access_token(str(uuid4()), datetime.now(UTC))
    headers = {"Authorization": f"Bearer {token}"}
    answer = await server.ask("GET", "/api/me", headers)
    assert (answer.status, answer.json) == (404, {"error": "user not found"})
    assert (await server.ask("DELETE", "/api/account", headers)).json == {"ok": True}
