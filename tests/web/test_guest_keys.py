"""Keys of guests (docs/protocol.md "Guests"): a device signs in with its key, whatever has become of its sessions."""

import pytest

from tests.harness.concurrency import gather
from tests.harness.constants import PASSWORD
from tests.harness.http_requests import new_address
from tests.harness.payloads import progress_of
from tests.harness.postgres import truncate
from tests.harness.service import start

KEY, OTHER = "k" * 22, "o" * 64


async def sign_in(server, key=KEY, address=None, **more):
    body = {"guest_key": key, **more}
    return await server.ask("POST", "/api/auth/guest", body=body, address=address or new_address())


async def change(server, guest, key, former=None):
    body = {"guest_key": key, "former_key": former}
    return await server.ask("PUT", "/api/me/guest-key", body=body, bearer=guest["access_token"])


def code(answer):
    return answer.status, answer.headers.get("error-code")


async def test_key_creates_a_guest_and_signs_in_to_it(server):
    """The first answer says that it has created the guest; every answer has the player."""
    first, second = await sign_in(server), await sign_in(server)
    assert list(first.json) == ["access_token", "refresh_token", "player", "created"]
    assert (first.json["created"], second.json["created"]) == (True, False)
    assert first.json["player"] == second.json["player"]
    assert first.json["player"]["guest"] is True
    assert first.json["refresh_token"] != second.json["refresh_token"]


async def test_guest_without_a_key_has_the_answer_of_1_1_0(server):
    """The pair of tokens, and no other field."""
    answer = await server.ask("POST", "/api/auth/guest")
    assert list(answer.json) == ["access_token", "refresh_token"]


async def test_simultaneous_requests_with_one_key_get_one_guest(nodes, no_deadlocks):
    """Exactly one of them has created it."""
    answers = await gather(8, lambda number: sign_in(nodes[number % 2]), range(8))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.json["player"]["id"] for answer in answers}) == 1
    assert sum(answer.json["created"] for answer in answers) == 1
    assert nodes[0].sql("SELECT count(*) FROM users") == [(1,)]


@pytest.mark.parametrize(
    "body",
    [
        {"guest_key": "k" * 21},
        {"guest_key": "k" * 65},
        {"guest_key": "k" * 22 + "!"},
        {"guest_key": 5},
        {"create": False},
        {"guest_key": None, "create": False},
    ],
    ids=str,
)
async def test_guest_needs_a_key_of_a_certain_form(server, body):
    """A request that creates no guest needs a key."""
    answer = await server.ask("POST", "/api/auth/guest", body=body)
    assert code(answer) == (400, "bad_field")
    assert server.sql("SELECT count(*) FROM users") == [(0,)]


async def test_unknown_key_creates_no_guest_when_the_device_asks_for_none(server):
    """The device has had a guest, which a restored backup may lack; a new one would hide that."""
    assert code(await sign_in(server, create=False)) == (404, "guest_unknown")
    assert server.sql("SELECT count(*) FROM users") == [(0,)]
    await sign_in(server)
    assert (await sign_in(server, create=False)).status == 200


@pytest.mark.parametrize("end", ["revoked", "expired", "secret"])
async def test_key_outlives_the_sessions_of_its_guest(reactor, server, shared_dsn, end):
    """All sessions are revoked, or their tokens are no longer valid. The games are still there."""
    guest = (await sign_in(server)).json
    pushed = progress_of(stats__games_played=7)
    await server.ask("POST", "/api/sync/push", body=pushed, bearer=guest["access_token"])
    if end == "revoked":
        server.sql("DELETE FROM refresh_tokens")
    elif end == "expired":
        server.sql("UPDATE refresh_tokens SET expires_at = now()")
    running = await start(reactor, shared_dsn, settings={"JWT_SECRET": "n" * 32} if end == "secret" else {})
    try:
        body = {"refresh_token": guest["refresh_token"]}
        assert (await running.ask("POST", "/api/auth/refresh", body=body)).status == 401
        again = (await sign_in(running, create=False)).json
        assert again["player"] == guest["player"]
        answer = await running.ask("GET", "/api/sync/pull", bearer=again["access_token"])
        assert answer.json["merged"]["stats"]["games_played"] == 7
    finally:
        await running.service.stopService()


async def test_suspension_holds_for_the_key(server):
    """The key works again when the suspension has ended."""
    await sign_in(server)
    server.sql("INSERT INTO suspensions SELECT id, now(), NULL, NULL, false FROM users")
    server.sql("DELETE FROM refresh_tokens")
    assert code(await sign_in(server)) == (403, "suspended")
    server.sql("DELETE FROM suspensions")
    assert (await sign_in(server, create=False)).status == 200


@pytest.mark.parametrize("way", ["claimed", "joined", "deleted", "deleted by an operator"])
async def test_key_is_gone_when_its_guest_has_become_a_player_or_was_deleted(server, way):
    """The key never signs in again, also if it may create a guest."""
    guest = (await sign_in(server)).json
    if way == "claimed":
        body = {"username": "ann", "password": PASSWORD}
        await server.ask("POST", "/api/me/claim", body=body, bearer=guest["access_token"])
    elif way == "joined":
        ann = await server.player("ann")
        await ann.join(guest["refresh_token"])
    elif way == "deleted":
        await server.ask("DELETE", "/api/account", bearer=guest["access_token"])
    else:
        server.sql("DELETE FROM users")
    for create in (True, False):
        assert code(await sign_in(server, create=create)) == (409, "guest_gone")
    assert server.sql("SELECT count(*) FROM users WHERE guest") == [(0,)]


async def test_claim_and_sign_in_with_the_key_exclude_each_other(nodes, no_deadlocks):
    """No session of the guest begins after the claim, which ends all other sessions."""
    for number in range(6):
        key = f"{number}" * 22
        guest = (await sign_in(nodes[0], key)).json

        async def act(kind, key=key, guest=guest, number=number):
            if kind == "sign in":
                return await sign_in(nodes[1], key)
            body = {"username": f"claimed_{number}", "password": PASSWORD}
            return await nodes[0].ask("POST", "/api/me/claim", body=body, bearer=guest["access_token"])

        claimed, signed_in = await gather(2, act, ["claim", "sign in"])
        assert claimed.status == 200
        assert code(signed_in) in [(200, None), (409, "guest_gone")]
        if signed_in.status == 200:
            body = {"refresh_token": signed_in.json["refresh_token"]}
            assert (await nodes[1].ask("POST", "/api/auth/refresh", body=body)).status == 401
        assert (
            await nodes[0].ask("POST", "/api/auth/refresh", body={"refresh_token": guest["refresh_token"]})
        ).status == 200


async def test_guest_sets_a_key_once_it_has_none(server):
    """Its sessions stay: a device of version 1.1.0 was upgraded."""
    guest = (await server.ask("POST", "/api/auth/guest")).json
    second = await change(server, guest, KEY)
    assert (second.status, second.json) == (200, {"ok": True})
    assert (await change(server, guest, KEY)).status == 200
    answer = await sign_in(server, create=False)
    me = await server.ask("GET", "/api/me", bearer=guest["access_token"])
    assert answer.json["player"]["id"] == me.json["id"]


async def test_new_key_replaces_the_former_one(server):
    """The former key is gone, and every other session of the guest ends."""
    guest, copy = (await sign_in(server)).json, (await sign_in(server)).json
    assert (await change(server, guest, OTHER, KEY)).status == 200
    assert code(await sign_in(server)) == (409, "guest_gone")
    assert (await sign_in(server, OTHER, create=False)).json["player"] == guest["player"]
    statuses = [
        (await server.ask("POST", "/api/auth/refresh", body={"refresh_token": each["refresh_token"]})).status
        for each in (guest, copy)
    ]
    assert statuses == [200, 401]


@pytest.mark.parametrize("former", [None, OTHER, ""])
async def test_new_key_needs_the_former_one(server, former):
    """A stolen access token alone doesn't take the guest over."""
    guest = (await sign_in(server)).json
    assert code(await change(server, guest, "n" * 22, former)) == (401, "invalid_credentials")
    assert (await sign_in(server, create=False)).status == 200


async def test_key_of_another_guest_is_refused(server):
    """The key may be another guest's now, or may have been before."""
    guest, other = (await sign_in(server)).json, (await sign_in(server, OTHER)).json
    assert code(await change(server, guest, OTHER, KEY)) == (409, "guest_gone")
    await server.ask("DELETE", "/api/account", bearer=other["access_token"])
    assert code(await change(server, guest, OTHER, KEY)) == (409, "guest_gone")
    assert (await sign_in(server, create=False)).json["player"] == guest["player"]


async def test_change_of_a_key_needs_a_guest_with_a_live_session(server):
    """A player has no key, and a token of an ended session changes nothing."""
    ann = await server.player("ann")
    answer = await server.ask("PUT", "/api/me/guest-key", body={"guest_key": KEY}, bearer=ann.tokens.access_token)
    assert code(answer) == (409, "not_a_guest")
    guest = (await sign_in(server)).json
    await server.ask("POST", "/api/auth/logout", body={"refresh_token": guest["refresh_token"]})
    assert code(await change(server, guest, OTHER, KEY)) == (401, "unauthorized")


async def test_refused_creation_does_not_count_as_a_login(reactor, shared_dsn):
    """The address of a school may sign in ten times a minute, though its limit of new guests is used up."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_GUEST_LIMIT": "1/3600"})
    try:
        address = new_address()
        creations = [(await sign_in(running, f"{number}" * 22, address)).status for number in range(6)]
        assert creations == [200] + [429] * 5
        logins = [(await sign_in(running, "0" * 22, address)).status for _ in range(10)]
        assert logins == [200] * 9 + [429]
    finally:
        await running.service.stopService()


async def test_refused_creations_count_as_logins_above_a_bound(reactor, shared_dsn):
    """Ten in a minute are given back, so that an address can't send them without end."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_GUEST_LIMIT": "1/3600"})
    try:
        address = new_address()
        answers = [await sign_in(running, f"{number:022}", address) for number in range(22)]
        refused_by_guests = sum(int(answer.headers.get("retry-after", 0)) > 60 for answer in answers)
        assert refused_by_guests == 19  # ten that are given back, and nine beside the created one
        assert answers[-1].status == 429
    finally:
        await running.service.stopService()
