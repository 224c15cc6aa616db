"""Accounts over HTTP (contract §3)."""

import pytest

from solisync.client import ApiError
from tests.conftest import PASSWORD


async def refused(call):
    with pytest.raises(ApiError) as caught:
        await call
    return caught.value.status, caught.value.message


async def test_a_new_player_can_see_themselves(server):
    """Register answers with a pair of tokens that work at once."""
    client = await server.player("ann")
    me = await client.me()
    assert (me.username, me.avatar_url) == ("ann", None)


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


async def test_a_taken_name_is_refused(server):
    """A second account of the same name, spaces around it or not, is a conflict."""
    await server.player("ann")
    assert await refused(server.client().register(" ann ", PASSWORD)) == (409, "username already taken")


async def test_names_differ_by_case(server):
    """Usernames are case-sensitive."""
    await server.player("ann")
    await server.player("Ann")
