"""Signing in to the console: docs/console.md "Signing in"."""

from contextlib import closing

import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import Clock

from solisync.errors import TooMany, Unauthorized
from solisync.rules.administration import CODE_DIGITS, SignIn
from solisync.rules.recovery import digest, new_code
from solisync.web.console.signing_in import LOADINGS_APART, REFUSED_AT_ONCE, REFUSED_SECONDS, SigningIn
from tests.harness.concurrency import gather, until
from tests.harness.console import SITE
from tests.harness.http_requests import new_address
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


async def test_of_many_requests_with_one_code_one_succeeds(console, soon):
    """A later request with the code is refused, too."""
    body = {"name": "ann", "code": await console.new_code()}
    asked = [Deferred.fromCoroutine(console.ask("POST", "/session", body)) for _ in range(9)]
    assert sorted(answer.status for answer in await gatherResults(asked)) == [200] + [401] * 8
    assert (await console.ask("POST", "/session", body)).status == 401


async def test_guesses_of_one_address_are_limited_but_a_right_code_works(console, refuse_after):
    """Ten refusals wait, with the same words for known and unknown names; the others return 429."""
    refuse_after(0.3)
    guesses = [{"name": name, "code": "0" * 26} for name in ("ann", "nobody") * 6]
    asked = gatherResults([Deferred.fromCoroutine(console.ask("POST", "/session", guess)) for guess in guesses])
    right = await console.ask("POST", "/session", {"name": "ann", "code": await console.new_code()})
    assert right.status == 200
    answers = await asked
    assert sorted(answer.status for answer in answers) == [401] * 10 + [429] * 2
    assert len({answer.content for answer in answers if answer.status == 401}) == 1


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


async def test_wrong_codes_do_not_use_up_a_code(console, server, soon):
    """Wrong codes aren't counted, and the counts of a node of version 1.0.0 are ignored."""
    right = {"name": "ann", "code": await console.new_code()}
    assert (await console.ask("POST", "/session", {"name": "ann", "code": "0" * 26})).status == 401
    assert server.sql("SELECT refused FROM admin_codes") == [(0,)]
    server.sql("UPDATE admin_codes SET refused = 100000")
    assert (await console.ask("POST", "/session", right)).status == 200


async def test_wrong_code_waits_for_no_lock(console, server, soon):
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


async def test_delayed_refusals_of_all_addresses_are_bounded(server, reactor):
    """A bounded number of wrong codes get their answer after a second; the others return 429 immediately."""
    clock, guess = Clock(), SignIn(name="ann", code="0" * 26)
    resource = SigningIn(database=server.service.parts.database, reactor=clock)
    refused = []
    for _ in range(REFUSED_AT_ONCE + 3):
        asked = Deferred.fromCoroutine(resource.begin(guess, None, new_address(), None))
        asked.addErrback(lambda failure: refused.append(failure.type))
    clock.advance(LOADINGS_APART)
    await until(reactor, lambda: len(clock.getDelayedCalls()) == REFUSED_AT_ONCE)
    assert refused == [TooMany] * 3
    clock.advance(REFUSED_SECONDS)
    assert refused[3:] == [Unauthorized] * REFUSED_AT_ONCE


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


async def test_right_code_works_among_many_guesses(console, soon):
    """Guesses at a known and at an unknown name get the same words."""
    code = await console.new_code()
    guesses = [{"name": name, "code": new_code(CODE_DIGITS)} for _ in range(15) for name in ("ann", "nobody")]
    asking = gather(30, lambda guess: console.ask("POST", "/session", guess), guesses)
    right = console.ask("POST", "/session", {"name": "ann", "code": code})
    refused, answer = await gatherResults([Deferred.fromCoroutine(each) for each in (asking, right)])
    assert answer.status == 200
    assert {each.status for each in refused} <= {401, 429}
    told = {(guess["name"], each.content) for guess, each in zip(guesses, refused, strict=True) if each.status == 401}
    assert len({content for _, content in told}) == 1


@pytest.mark.parametrize("name", ["ann\0", "x" * 1_000_000])
async def test_unknown_name_is_refused_like_a_wrong_code(console, soon, name):
    """The name may be one that no text column can hold."""
    answer = await console.ask("POST", "/session", {"name": name, "code": new_code(CODE_DIGITS)})
    assert (answer.status, answer.headers["error-code"]) == (401, "invalid_credentials")
