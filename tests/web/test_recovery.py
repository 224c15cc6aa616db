"""Lost passwords: recovery codes and reset links (docs/protocol.md "Lost passwords")."""

from datetime import UTC, datetime, timedelta

import bcrypt
import pytest

from solisync.rules.recovery import CODES, digest, new_reset_token
from tests.harness.constants import PASSWORD
from tests.harness.http_requests import new_address
from tests.harness.service import refused

NEW = "another horse"
SAME_ORIGIN = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
PUT = "INSERT INTO reset_tokens SELECT id, %s, clock_timestamp() + %s FROM users WHERE username = %s"
CODES_OF = "SELECT count(*) FROM recovery_codes JOIN users ON user_id = id WHERE username = %s"


async def make_codes(client):
    return (await client.make_recovery_codes(PASSWORD)).codes


def link(server, name="ann", lifetime=timedelta(hours=1)):
    """Return the token of a reset link of this player."""
    token = new_reset_token()
    server.sql(PUT, (digest(token), lifetime, name))
    return token


def left(server, name="ann"):
    ((count,),) = server.sql(CODES_OF, (name,))
    return count


def links(server):
    ((count,),) = server.sql("SELECT count(*) FROM reset_tokens")
    return count


async def test_recovery_code_sets_a_new_password(server):
    """The reply has the only session left. The old password and the code no longer work."""
    client, other = await server.player("ann"), server.client()
    code, *rest = await make_codes(client)
    link(server)
    await other.recover(" ann ", code.lower().replace("-", " "), NEW)
    assert [session.current for session in await other.sessions()] == [True]
    assert await refused(client.refresh()) == (401, "unauthorized")
    assert await refused(server.client().login("ann", PASSWORD)) == (401, "invalid credentials")
    assert await server.client().login("ann", NEW)
    assert await refused(server.client().recover("ann", code, PASSWORD)) == (401, "invalid credentials")
    assert (left(server), links(server)) == (CODES - 1, 0)
    assert await server.client().recover("ann", rest[-1], PASSWORD)


async def test_reset_link_sets_a_new_password_and_deletes_all_codes(server):
    """A thief may have made the codes. Another player's codes stay."""
    client, other = await server.player("ann"), await server.player("bob")
    await make_codes(client)
    await make_codes(other)
    token = link(server)
    keeper = server.client()
    await keeper.reset(token, NEW)
    assert (await keeper.me()).username == "ann"
    assert await refused(client.refresh()) == (401, "unauthorized")
    assert await refused(server.client().reset(token, NEW)) == (401, "invalid credentials")
    assert await server.client().login("ann", NEW)
    assert (left(server), left(server, "bob"), links(server)) == (0, CODES, 0)
    assert await other.refresh()


async def test_new_codes_are_shown_once_and_replace_earlier_codes(server):
    """Later the service shows only the number of codes left and the time when they were made."""
    client = await server.player("ann")
    none = await client.recovery_codes_left()
    assert (none.left, none.created_at) == (0, None)
    former = await make_codes(client)
    made = await client.make_recovery_codes(PASSWORD)
    assert len(set(made.codes) | set(former)) == 2 * CODES
    assert abs(made.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert await refused(client.recover("ann", former[0], NEW)) == (401, "invalid credentials")
    await client.recover("ann", made.codes[3], NEW)
    now = await client.recovery_codes_left()
    assert (now.left, now.created_at) == (CODES - 1, made.created_at)


async def test_no_code_or_token_is_stored(server):
    """The tables have only digests."""
    client = await server.player("ann")
    codes, token = await make_codes(client), link(server)
    stored = str(
        [
            bytes(row[0])
            for row in server.sql("SELECT digest FROM recovery_codes UNION ALL SELECT digest FROM reset_tokens")
        ]
    )
    assert len(server.sql("SELECT digest FROM recovery_codes")) == CODES
    assert not [secret for secret in (*codes, token) if secret in stored or secret.replace("-", "") in stored]


@pytest.mark.parametrize(
    ("name", "code", "new", "answer"),
    [
        ("ann", "wrong", "x" * 7, (400, "password must be at least 8 characters")),
        ("nobody", "right", "x" * 1025, (400, "password must be at most 1024 bytes")),
        ("ann\0", "right", NEW, (400, "username must not contain U+0000")),
        ("ann", "wrong", NEW, (401, "invalid credentials")),
        ("nobody", "right", NEW, (401, "invalid credentials")),
        ("bob", "right", NEW, (401, "invalid credentials")),
        ("", "right", NEW, (401, "invalid credentials")),
        ("ann", "", NEW, (401, "invalid credentials")),
    ],
)
async def test_refused_recovery_changes_nothing(server, name, code, new, answer):
    """The rules of the new password are checked first; every other mistake gets the same reply."""
    client, _ = await server.player("ann"), await server.player("bob")
    codes = await make_codes(client)
    typed = {"right": codes[0], "wrong": codes[0][:-1] + ("0" if codes[0][-1] != "0" else "1")}.get(code, code)
    assert await refused(server.client().recover(name, typed, new)) == answer
    assert left(server) == CODES
    assert await client.refresh()
    assert await server.client().login("ann", PASSWORD)


@pytest.mark.parametrize(("lifetime", "token"), [(timedelta(0), None), (timedelta(hours=1), "x" * 43)])
async def test_wrong_or_expired_link_changes_nothing(server, lifetime, token):
    """The reply is the same for both. The codes and the valid link stay."""
    client = await server.player("ann")
    await make_codes(client)
    made = link(server, lifetime=lifetime)
    assert await refused(server.client().reset(token or made, NEW)) == (401, "invalid credentials")
    assert (left(server), links(server)) == (CODES, 1)
    assert await client.refresh()


@pytest.mark.parametrize("name", ["ann", "nobody", "!"])
async def test_every_refusal_costs_one_hash(server, monkeypatch, name):
    """The player may be unknown and the code malformed."""
    client = await server.player("ann")
    await make_codes(client)
    hashed, make = [], bcrypt.hashpw
    monkeypatch.setattr(bcrypt, "hashpw", lambda *given: hashed.append(given) or make(*given))
    monkeypatch.setattr(bcrypt, "checkpw", None)
    for code in ("0000-0000-0000-0000", "no code"):
        assert await refused(server.client().recover(name, code, NEW)) == (401, "invalid credentials")
    assert await refused(server.client().reset("no token", NEW)) == (401, "invalid credentials")
    assert len(hashed) == 3


async def test_guessing_reveals_nothing_and_locks_no_player_out(server):
    """Guesses from several addresses get the same reply for known and unknown names, and a right code still works."""
    client = await server.player("ann")
    codes = await make_codes(client)
    answers = set()
    for _ in range(3):
        address = new_address()
        for number in range(9):
            body = {
                "username": ("ann", "nobody")[number % 2],
                "code": f"0000-0000-0000-{number:04}",
                "new_password": NEW,
            }
            answer = await server.ask("POST", "/api/auth/recover", body=body, address=address)
            answers.add((answer.status, answer.content, frozenset(answer.headers)))
    ((status, content, _),) = answers
    assert (status, content) == (401, b'{"error":"invalid credentials"}')
    await server.client().recover("ann", codes[0], NEW)
    assert (left(server), await server.client().login("ann", NEW) is not None) == (CODES - 1, True)


async def test_new_codes_need_the_password(server):
    """A stolen access token isn't enough."""
    client = await server.player("ann")
    assert await refused(client.make_recovery_codes("wrong")) == (401, "invalid credentials")
    assert await refused(client.make_recovery_codes(PASSWORD + "x" * 1024)) == (401, "invalid credentials")
    assert left(server) == 0
    assert len(await make_codes(client)) == CODES == left(server)


async def test_password_change_deletes_the_link_and_keeps_the_codes(server):
    """The player has access, so an unused link is only a risk."""
    client = await server.player("ann")
    await make_codes(client)
    link(server)
    await client.change_password(PASSWORD, NEW)
    assert (left(server), links(server)) == (CODES, 0)


async def test_suspended_player_can_not_recover(server):
    """A right code or link returns 403 with the reason and isn't spent. Wrong ones get the usual reply."""
    client = await server.player("ann")
    codes, token = await make_codes(client), link(server)
    server.sql("INSERT INTO suspensions SELECT id, now(), NULL, 'stop it', false FROM users")
    for attempt in (server.client().recover("ann", codes[0], NEW), server.client().reset(token, NEW)):
        assert await refused(attempt) == (403, "this account is suspended: stop it")
    for attempt in (server.client().recover("ann", "0" * 16, NEW), server.client().reset("x" * 43, NEW)):
        assert await refused(attempt) == (401, "invalid credentials")
    assert (left(server), links(server)) == (CODES, 1)
    server.sql("DELETE FROM suspensions")
    assert await client.refresh()
    assert await server.client().login("ann", PASSWORD)
    assert await server.client().recover("ann", codes[0], NEW)


async def test_deleted_player_has_no_codes(server):
    """The old code and link get the reply of wrong ones."""
    client = await server.player("ann")
    codes, reset = await make_codes(client), link(server)
    await client.delete_account()
    assert await refused(server.client().recover("ann", codes[0], NEW)) == (401, "invalid credentials")
    assert await refused(server.client().reset(reset, NEW)) == (401, "invalid credentials")


@pytest.mark.parametrize("path", ["/api/session/recover", "/api/session/reset"])
async def test_page_gets_the_recovered_session_in_its_cookie(server, path):
    """The guard comes first, the body has no refresh token, and the browser's former session ends, as at sign-in."""
    client = await server.player("ann")
    codes = await make_codes(client)
    way = {"username": "ann", "code": codes[0]} if path.endswith("recover") else {"token": link(server)}
    body = way | {"new_password": NEW}
    foreign = await server.ask("POST", path, {"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}, body)
    assert foreign.status == 403
    answer = await server.ask("POST", path, SAME_ORIGIN, body)
    assert (answer.status, answer.json["username"], len(answer.json)) == (200, "ann", 2)
    assert answer.headers["set-cookie"].startswith("solisync=ey")
    assert (await server.ask("GET", "/api/me", bearer=answer.json["access_token"])).status == 200
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert (await server.ask("POST", "/api/session/refresh", {**SAME_ORIGIN, "Cookie": cookie})).status == 200
    again = await server.ask("POST", path, SAME_ORIGIN, body)
    assert (again.status, "set-cookie" in again.headers) == (401, False)
