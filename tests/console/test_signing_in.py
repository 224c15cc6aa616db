"""Signing in to the console: docs/console.md "Signing in"."""

from contextlib import closing

import pytest
from twisted.internet.defer import Deferred, gatherResults

from solisync.access.rate_limit import WRONG_CODES
from solisync.rules.administration import CODE_DIGITS
from solisync.rules.recovery import digest, new_code
from tests.harness.concurrency import gather
from tests.harness.console import SITE
from tests.harness.postgres import connect


async def test_code_begins_a_session(console, server):
    """Scripts and other sites can't use the cookie; the database has only its digest; signing out ends the session."""
    body = {"name": "ann", "code": (await console.new_code()).lower().replace("-", " ")}
    answer = await console.ask("POST", "/session", body, SITE | {"User-Agent": "a browser"})
    pair, *attributes = answer.headers["set-cookie"].split("; ")
    assert set(attributes) == {"Max-Age=43200", "Path=/", "HttpOnly", "SameSite=Strict"}
    assert pair.startswith("solisync-admin=")
    assert answer.json["name"] == "ann"
    secret = pair.partition("=")[2]
    assert server.sql("SELECT digest = %s, client, user_agent FROM admin_sessions", (digest(secret),)) == [
        (True, console.address, "a browser")
    ]
    console.cookie = pair
    me = await console.get("/me")
    assert (me["name"], me["until"]) == ("ann", answer.json["until"])
    assert [session["id"] for session in me["sessions"]] == [me["current"]]
    done = await console.ask("DELETE", "/session")
    assert done.headers["set-cookie"].startswith("solisync-admin=; Max-Age=0;")
    assert (await console.ask("GET", "/me")).status == 401
    assert (await console.ask("DELETE", "/session", cookie="")).status == 200


async def test_of_many_requests_with_one_code_one_succeeds(console):
    """A later request with the code is refused, too."""
    body = {"name": "ann", "code": await console.new_code()}
    asked = [Deferred.fromCoroutine(console.ask("POST", "/session", body)) for _ in range(9)]
    assert sorted(answer.status for answer in await gatherResults(asked)) == [200] + [401] * 8
    assert (await console.ask("POST", "/session", body)).status == 401


async def test_guesses_of_one_address_are_limited_but_a_right_code_works(console):
    """Ten wrong codes return 401, with the same words for known and unknown names; more return 429."""
    await console.new_code()
    guesses = [{"name": name, "code": new_code(CODE_DIGITS)} for name in ("ann", "nobody") * 6]
    answers = await gather(12, lambda guess: console.ask("POST", "/session", guess), guesses)
    assert sorted(answer.status for answer in answers) == [401] * WRONG_CODES.most + [429] * 2
    assert len({answer.content for answer in answers if answer.status == 401}) == 1
    right = {"name": "ann", "code": await console.new_code()}
    assert (await console.ask("POST", "/session", right)).status == 200


@pytest.mark.parametrize("end", ["expire", "idle", "end", "remove"])
async def test_ended_session_returns_401(console, server, administrate, end):
    """A session ends by its age, unused, by a command, or with its admin."""
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


async def test_wrong_codes_do_not_use_up_a_code(console, server):
    """Wrong codes aren't counted, and the counts of a node of version 1.0.0 are ignored."""
    right = {"name": "ann", "code": await console.new_code()}
    assert (await console.ask("POST", "/session", {"name": "ann", "code": "0" * 26})).status == 401
    assert server.sql("SELECT refused FROM admin_codes") == [(0,)]
    server.sql("UPDATE admin_codes SET refused = 100000")
    assert (await console.ask("POST", "/session", right)).status == 200


async def test_wrong_code_waits_for_no_lock(console, server):
    """While a transaction has locked the code of its admin, a wrong code is refused, and another admin signs in."""
    await console.new_code("ann")
    right = {"name": "bob", "code": await console.new_code("bob")}
    with closing(connect(server.dsn)) as holder:
        holder.cursor().execute("BEGIN; SELECT FROM admin_codes WHERE admin = 'ann' FOR UPDATE")
        asked = [
            Deferred.fromCoroutine(console.ask("POST", "/session", body))
            for body in ({"name": "ann", "code": "0" * 26}, right)
        ]
        assert [answer.status for answer in await gatherResults(asked)] == [401, 200]


async def test_admin_ends_only_own_sessions(console, server):
    """A session of another admin returns 404."""
    await console.sign_in("bob")
    ((of_bob,),) = server.sql("SELECT id::text FROM admin_sessions")
    await console.sign_in("ann")
    first = (await console.get("/me"))["current"]
    await console.sign_in("ann")
    for session_id in (of_bob, "nonsense"):
        assert (await console.ask("DELETE", f"/me/sessions/{session_id}")).status == 404
    assert (await console.ask("DELETE", f"/me/sessions/{first}")).status == 200
    assert len((await console.get("/me"))["sessions"]) == 1


@pytest.mark.parametrize("name", ["ann\0", "x" * 1_000_000])
async def test_unknown_name_is_refused_like_a_wrong_code(console, name):
    """The name may be one that no text column can hold."""
    answer = await console.ask("POST", "/session", {"name": name, "code": new_code(CODE_DIGITS)})
    assert (answer.status, answer.headers["error-code"]) == (401, "invalid_credentials")
