"""Changing the password (docs/protocol.md "Sessions")."""

import bcrypt
import pytest

from solisync.access.passwords import prehash
from tests.harness.constants import PASSWORD
from tests.harness.service import refused

NEW = "another horse"


async def test_new_password_ends_every_other_session(server):
    """The reply has the tokens of the only session left; the old password no longer logs in."""
    client, other = await server.player("ann"), server.client()
    await other.login("ann", PASSWORD)
    former = client.tokens
    await client.change_password(PASSWORD, NEW)
    assert [session.current for session in await client.sessions()] == [True]
    assert await client.refresh()
    assert await refused(other.refresh()) == (401, "unauthorized")
    client.tokens = former
    assert await refused(client.refresh()) == (401, "unauthorized")
    assert await refused(other.login("ann", PASSWORD)) == (401, "invalid credentials")
    assert await other.login("ann", NEW)


async def test_access_token_remains_valid_after_a_password_change(server):
    """Access tokens are valid until they expire."""
    client = await server.player("ann")
    token = client.tokens.access_token
    await client.change_password(PASSWORD, PASSWORD)  # the new password may equal the old one
    assert (await server.ask("GET", "/api/me", bearer=token)).status == 200


@pytest.mark.parametrize(
    ("current", "new", "answer"),
    [
        (PASSWORD, "x" * 7, (400, "password must be at least 8 characters")),
        ("wrong", "x" * 1025, (400, "password must be at most 1024 bytes")),
        ("wrong", NEW, (401, "invalid credentials")),
        ("", NEW, (401, "invalid credentials")),
        (PASSWORD + "x" * 1024, NEW, (401, "invalid credentials")),
    ],
)
async def test_refused_change_changes_nothing(server, current, new, answer):
    """The rules of the new password are checked first, then the current password. All sessions continue."""
    client = await server.player("ann")
    assert await refused(client.change_password(current, new)) == answer
    assert await client.refresh()
    assert await server.client().login("ann", PASSWORD)


async def test_deleted_player_can_not_change_a_password(server):
    """The new password is checked before the player, the current password after."""
    client = await server.player("ann")
    token = client.tokens.access_token
    await client.delete_account()
    for new, status in (("x", 400), (NEW, 404)):
        body = {"current_password": "wrong", "new_password": new}
        assert (await server.ask("PUT", "/api/me/password", body=body, bearer=token)).status == status


@pytest.mark.parametrize("work", ["login", "change", "codes"])
async def test_verified_password_must_still_be_the_stored_one(server, monkeypatch, work):
    """Another password is set while bcrypt runs: the request fails, and the sessions continue."""
    client = await server.player("ann")
    verify = bcrypt.checkpw

    def verify_while_it_changes(*pair):
        server.sql("UPDATE users SET password_hash = %s", (bcrypt.hashpw(b"reset", bcrypt.gensalt(4)).decode(),))
        return verify(*pair)

    monkeypatch.setattr(bcrypt, "checkpw", verify_while_it_changes)
    asked = {
        "login": lambda: server.client().login("ann", PASSWORD),
        "change": lambda: client.change_password(PASSWORD, NEW),
        "codes": lambda: client.make_recovery_codes(PASSWORD),
    }
    assert await refused(asked[work]()) == (401, "invalid credentials")
    monkeypatch.setattr(bcrypt, "checkpw", verify)
    assert await server.client().login("ann", "reset")
    assert await client.refresh()
    assert server.sql("SELECT count(*) FROM recovery_codes") == [(0,)]


@pytest.mark.parametrize("how", ["change", "reset"])
async def test_imported_hash_uses_72_bytes_until_it_is_replaced(server, how):
    """The player logs in with the long old password. All bytes of the next password count."""
    client, old, new = await server.player("ann"), "long " * 20, "another " * 20
    theirs = bcrypt.hashpw(old.encode()[:72], bcrypt.gensalt(4)).decode()
    server.sql("UPDATE users SET password_hash = %s", (theirs,))
    server.sql("UPDATE users SET password_cut = true")
    assert await client.login("ann", old)
    assert await client.login("ann", old[:72])
    assert await refused(client.login("ann", old[:71])) == (401, "invalid credentials")
    if how == "change":
        await client.change_password(old, new)
    else:  # a node of an older version hashes like this
        made = bcrypt.hashpw(prehash(new.encode()), bcrypt.gensalt(4)).decode()
        server.sql("UPDATE users SET password_hash = %s", (made,))
    assert server.sql("SELECT password_cut FROM users") == [(None,)]
    assert await client.login("ann", new)
    assert await refused(client.login("ann", new[:72])) == (401, "invalid credentials")
