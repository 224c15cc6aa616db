"""The budget of large bodies that each account may send (docs/security.md "Bounds")."""

import pytest
from twisted.internet.task import deferLater

from solisync.access import large_bodies
from solisync.access.large_bodies import BURST_BYTES, LARGE_BYTES, LargeBodies
from solisync.acts import players
from solisync.rules.shapes import MAX_BODY
from solisync.web.handler_limits import OneAtATime
from solisync.web.shared_cache import SECONDS
from tests.harness.acting import operator
from tests.harness.payloads import IMAGES, encode, progress_of
from tests.wire.sockets import turn

BURST = BURST_BYTES // MAX_BODY


def image(size):
    """Return a body of so many bytes that is cheap to read."""
    return IMAGES["png"].ljust(size, b"x")


def refusals(server, limit):
    """Return how many requests this limit has refused."""
    counted = server.service.parts.metrics.registry.get_sample_value
    return counted("solisync_rate_limit_refusals_total", {"limit": limit}) or 0


async def send(server, player, size):
    """Return the answer to a valid body of so many bytes."""
    headers = {"Content-Type": "image/png"}
    return await server.ask("PUT", "/api/me/avatar", headers, image(size), bearer=player.tokens.access_token)


async def test_account_sends_twenty_large_bodies_before_it_is_slowed_down(server):
    """More get 429 with Retry-After from any address. Small bodies and other accounts' bodies still pass."""
    ann, bob = await server.player("ann"), await server.player("bob")
    answers = [await send(server, ann, MAX_BODY) for _ in range(BURST)]
    while answers[-1].status == 200 and len(answers) < 20 * BURST:  # the budget grows by two in each second
        answers.append(await send(server, ann, MAX_BODY))
    refused = answers.pop()
    assert {answer.status for answer in answers} == {200}
    assert (refused.status, refused.json, refused.headers["retry-after"]) == (429, {"error": "too many requests"}, "1")
    assert (await send(server, ann, LARGE_BYTES)).status == 200
    assert (await send(server, bob, MAX_BODY)).status == 200


async def test_chunked_body_is_charged_as_the_largest(server, connect):
    """Its size is unknown when it becomes large; a small one is free. After a 429 the connection continues."""
    ann = await server.player("ann")
    wire = await connect(server.port)
    token = ann.tokens.access_token
    head = f"PUT /api/me/avatar HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nAuthorization: Bearer {token}\r\n"
    for size, enough in ((LARGE_BYTES, 2 * BURST), (LARGE_BYTES + 1, 20 * BURST)):
        request = b"%bTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (head.encode(), size, image(size))
        statuses = []
        while 429 not in statuses and len(statuses) < enough:
            wire.received = b""
            wire.send(request)
            await wire.until(lambda data: data.endswith(b"}"))
            statuses.append(int(wire.received[9:12]))
        assert statuses.count(200) >= BURST
        assert statuses[-1] == (429 if size > LARGE_BYTES else 200)


async def test_small_push_onto_large_progress_is_charged_for_the_progress(server, monkeypatch):
    """The larger of both is charged once.

    Then 429 comes with Retry-After, nothing is stored, and pull still works. The refusal counts for this budget
    alone, not also for writes that wait for each other.
    """
    monkeypatch.setattr(large_bodies, "BYTES_PER_SECOND", 1)
    before = [refusals(server, name) for name in (LargeBodies.name, OneAtATime.name)]
    ann, bob = await server.player("ann"), await server.player("bob")
    large = encode(progress_of(zz="x" * (MAX_BODY - 2 * LARGE_BYTES)))

    async def push(player, body):
        return await server.ask("POST", "/api/sync/push", body=body, bearer=player.tokens.access_token)

    answers = [await push(ann, large) for _ in range(2)]
    ((stored,),) = server.sql("SELECT octet_length(payload) FROM sync_states")
    most = 2 + (BURST_BYTES - 2 * max(stored, len(large))) // stored
    answers += [await push(ann, progress_of(stats__games_won=number)) for number in range(2, most + 1)]
    refused = answers.pop()
    assert {answer.status for answer in answers} == {200}
    assert (refused.status, refused.json) == (429, {"error": "too many requests"})
    assert int(refused.headers["retry-after"]) >= 1
    assert [refusals(server, name) for name in (LargeBodies.name, OneAtATime.name)] == [before[0] + 1, before[1]]
    assert (await ann.pull()).merged.stats.games_won == most - 1
    assert (await push(bob, progress_of())).status == 200
    assert (await send(server, ann, LARGE_BYTES)).status == 200


async def test_unread_body_is_not_charged(server):
    """Large bodies without a valid token, or for unknown paths, get the usual answers, however many there are."""
    for method, path, status in (("POST", "/api/sync/push", 401), ("POST", "/nope", 404)):
        answers = [await server.ask(method, path, body=image(MAX_BODY), address="10.9.8.7") for _ in range(BURST + 5)]
        assert {answer.status for answer in answers} == {status}


LENGTH, CHUNKED = "Content-Length: 200000", "Transfer-Encoding: chunked"


@pytest.mark.parametrize("known", [True, False], ids=["known", "to be asked for"])
async def test_large_body_of_a_refused_player_is_dropped(server, connect, reactor, known):
    """A suspended or cut-off player's body is dropped as it arrives, even while the database is asked.

    The answer comes after the body; other players' bodies are kept.
    """
    half, site = image(100_000), server.service.site
    ann, bob, cyd = [await server.player(name) for name in ("ann", "bob", "cyd")]
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.suspend, (await ann.me()).id)
        await acting.perform(players.end_sessions, (await bob.me()).id, access=True)
    await deferLater(reactor, SECONDS)
    if known:
        await cyd.me()
    cases = [(ann, 403, CHUNKED), (ann, 403, LENGTH), (bob, 401, LENGTH), (cyd, 400, LENGTH)]
    for player, status, framing in cases if known else cases[:1]:
        head = f"POST /api/sync/push HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {player.tokens.access_token}\r\n"
        wire = await connect(server.port)
        part = b"%x\r\n%b\r\n" % (len(half), half) if framing is CHUNKED else half
        wire.send(f"{head}Connection: close\r\n{framing}\r\n\r\n".encode() + part)
        while not (begun := [each.request.body for each in site.connections.open if each.request]):
            await turn()
        while begun[0].received < len(half) or (begun[0].unwanted is None) == (player is not cyd):
            await turn()
        assert site.connections.unfinished.used == (len(half) if player is cyd else 0)
        wire.send(part + b"0\r\n\r\n" if framing is CHUNKED else part)
        assert [answer.status for answer in await wire.answers()] == [status]
