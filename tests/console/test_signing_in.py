"""Signing in to the console: docs/console.md "Signing in"."""

import pytest
from twisted.internet.defer import Deferred, gatherResults

from solisync.rules.admins import CODE_DIGITS, CODE_REFUSALS
from solisync.rules.codes import digest, new_code
from solisync.web.console import signing_in
from tests.harness.concurrency import gather
from tests.harness.console import SITE


async def code_of(administrate, name="ann"):
    return (await administrate("admins", "code", name, "--json")).json["code"]


async def test_a_code_begins_a_session(console, server, administrate):
    """The cookie is for no script and no other site; only its digest is stored; signing out ends the session."""
    await administrate("admins", "add", "ann")
    body = {"name": "ann", "code": (await code_of(administrate)).lower().replace("-", " ")}
    answer = await console.ask("POST", "/session", body, SITE | {"User-Agent": "a browser"})
    pair, *attributes = answer.headers["set-cookie"].split("; ")
    assert set(attributes) == {"Max-Age=43200", "Path=/", "HttpOnly", "SameSite=Strict"}
    assert pair.startswith("solisync-admin=")
    assert answer.json["name"] == "ann"
    secret = pair.partition("=")[2]
    assert server.sql("SELECT digest = %s, client, user_agent FROM admin_sessions", (digest(secret),)) == [
        (True, "127.0.0.1", "a browser")
    ]
    console.cookie = pair
    me = await console.get("/me")
    assert (me["name"], me["until"]) == ("ann", answer.json["until"])
    assert [session["id"] for session in me["sessions"]] == [me["current"]]
    done = await console.ask("DELETE", "/session")
    assert done.headers["set-cookie"].startswith("solisync-admin=; Max-Age=0;")
    assert (await console.ask("GET", "/me")).status == 401
    assert (await console.ask("DELETE", "/session", cookie="")).status == 200


async def test_of_many_requests_with_one_code_one_succeeds(console, administrate, soon):
    """All others are refused, and so is everything later."""
    await administrate("admins", "add", "ann")
    body = {"name": "ann", "code": await code_of(administrate)}
    asked = [Deferred.fromCoroutine(console.ask("POST", "/session", body)) for _ in range(9)]
    assert sorted(answer.status for answer in await gatherResults(asked)) == [200] + [401] * 8
    assert (await console.ask("POST", "/session", body)).status == 401


async def test_guessing_locks_nobody_out(console, administrate, reactor, monkeypatch):
    """Ten refusals of a peer wait, known name or not, with the same words; more are a 429; a right code works."""
    monkeypatch.setattr(signing_in, "REFUSED_SECONDS", 0.3)
    await administrate("admins", "add", "ann")
    guesses = [{"name": name, "code": "0" * 26} for name in ("ann", "nobody") * 6]
    asked = gatherResults([Deferred.fromCoroutine(console.ask("POST", "/session", guess)) for guess in guesses])
    right = await console.ask("POST", "/session", {"name": "ann", "code": await code_of(administrate)})
    assert right.status == 200
    answers = await asked
    assert sorted(answer.status for answer in answers) == [401] * 10 + [429] * 2
    assert len({answer.content for answer in answers if answer.status == 401}) == 1


@pytest.mark.parametrize("end", ["expire", "idle", "end", "remove"])
async def test_a_session_that_has_ended_lets_nobody_in(console, server, administrate, end):
    """By its age, unused, by command, or with its admin: the next request is a 401."""
    await console.sign_in()
    await console.get("/me")
    match end:
        case "expire":
            server.sql("UPDATE admin_sessions SET begun_at = now() - interval '12 hours'")
        case "idle":
            server.sql("UPDATE admin_sessions SET used_at = now() - interval '1 hour'")
        case "end":
            await administrate("admins", "sessions", "ann", "--end")
        case "remove":
            await administrate("admins", "remove", "ann")
    assert (await console.ask("GET", "/me")).status == 401


async def test_guesses_of_all_peers_count_against_a_code(console, server, administrate, soon):
    """After too many a right code is refused as well, with the same words; the next code works."""
    await administrate("admins", "add", "ann")
    right = {"name": "ann", "code": await code_of(administrate)}
    for name in ("ann", "nobody", "ann"):
        assert (await console.ask("POST", "/session", {"name": name, "code": "0" * 26})).status == 401
    assert server.sql("SELECT refused FROM admin_codes") == [(2,)]
    server.sql("UPDATE admin_codes SET refused = %s - 1", (CODE_REFUSALS,))
    last = await console.ask("POST", "/session", {"name": "ann", "code": "0" * 26})
    refused = await console.ask("POST", "/session", right)
    assert (last.status, refused.status, refused.content) == (401, 401, last.content)
    assert server.sql("SELECT refused FROM admin_codes") == [(CODE_REFUSALS,)]
    again = {"name": "ann", "code": await code_of(administrate)}
    assert (await console.ask("POST", "/session", again)).status == 200


async def test_an_admin_ends_own_sessions_alone(console, server):
    """Another one of theirs, but none of another admin."""
    await console.sign_in("bob")
    ((of_bob,),) = server.sql("SELECT id::text FROM admin_sessions")
    await console.sign_in("ann")
    first = (await console.get("/me"))["current"]
    await console.sign_in("ann")
    for session_id in (of_bob, "nonsense"):
        assert (await console.ask("DELETE", f"/me/sessions/{session_id}")).status == 404
    assert (await console.ask("DELETE", f"/me/sessions/{first}")).status == 200
    assert len((await console.get("/me"))["sessions"]) == 1


async def test_guessing_keeps_nobody_out(console, administrate, soon):
    """Many guesses at a known and at an unknown name get the same words; a right code works in their midst."""
    await administrate("admins", "add", "ann")
    code = await code_of(administrate)
    guesses = [{"name": name, "code": new_code(CODE_DIGITS)} for _ in range(15) for name in ("ann", "nobody")]
    asking = gather(30, lambda guess: console.ask("POST", "/session", guess), guesses)
    right = console.ask("POST", "/session", {"name": "ann", "code": code})
    refused, answer = await gatherResults([Deferred.fromCoroutine(each) for each in (asking, right)])
    assert answer.status == 200
    assert {each.status for each in refused} <= {401, 429}
    told = {(guess["name"], each.content) for guess, each in zip(guesses, refused, strict=True) if each.status == 401}
    assert len({content for _, content in told}) == 1
