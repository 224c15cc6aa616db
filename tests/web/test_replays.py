"""Replays over HTTP (docs/protocol.md "Replays")."""

import hashlib
import json

import pytest
from hypothesis import strategies as st
from twisted.internet import defer

from solisync.storage.paging import END
from solisync.storage.replays.recent_replays import PAGE
from tests.harness.boards import check, verified
from tests.harness.concurrency import gather
from tests.harness.payloads import REPLAY_HEADER, replay
from tests.harness.plans import plan
from tests.harness.postgres import truncate
from tests.harness.service import start
from tests.harness.strategies import examples
from tests.web.calls import board, opt_in

MIB = 2**20


async def upload(server, client, body):
    return await server.ask("POST", "/api/replays", body=body, bearer=client.tokens.access_token)


async def recent(server, query=""):
    return await server.ask("GET", f"/api/replays/recent{query}")


async def test_replay_is_returned_byte_for_byte(server):
    """Spelling, order, white space and doubled keys stay. Every client may fetch and cache the replay."""
    client = await server.player("ann")
    body = replay().replace(b'"seed"', b' "z" :\t1.50e+1,\r\n"seed"') + b"\n "
    answer = await upload(server, client, body)
    assert answer.status == 200
    fetched = await server.ask("GET", f"/api/replays/{answer.json['id']}")
    assert (fetched.status, fetched.content) == (200, body)
    assert fetched.headers["content-type"] == "application/json"
    assert fetched.headers["cache-control"] == "public, max-age=300"
    tag = fetched.headers["etag"]
    again = await server.ask("GET", f"/api/replays/{answer.json['id']}", {"If-None-Match": tag})
    assert (again.status, again.content, again.headers["etag"]) == (304, b"", tag)


async def test_recent_list_is_newest_first(server):
    """Each entry has the player's name and the numbers as they were uploaded."""
    client = await server.player("ann")
    first = await upload(
        server, client, replay(mode={"Difficulty": "Hard"}, final_score=-0.5, recorded_at="2026-01-02")
    )
    spelled = replay(final_score="SCORE").replace(b'"SCORE"', b"1.50").replace(b', "seed": 18446744073709551615', b"")
    second = await upload(server, client, spelled)
    answer = await recent(server)
    newest, oldest = answer.json
    assert list(newest) == [
        "id",
        "username",
        "seed",
        "deal",
        "draw_mode",
        "mode",
        "time_seconds",
        "final_score",
        "recorded_at",
        "received_at",
        "verdict",
    ]
    assert (newest["id"], newest["username"], newest["seed"]) == (second.json["id"], "ann", None)
    assert (newest["deal"], oldest["deal"]) == (None, str(2**64 - 1))
    assert b'"final_score":1.50' in answer.content
    assert (oldest["id"], oldest["mode"], oldest["seed"]) == (first.json["id"], "Difficulty", 2**64 - 1)
    assert (oldest["recorded_at"], oldest["final_score"]) == ("2026-01-02", -0.5)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 20),
        ("?limit=0", 0),
        ("?limit=1", 1),
        ("?limit=50", 50),
        ("?limit=51", 50),
        (f"?limit={2**80}", 50),
        ("?&y=&li%6dit=%31&y", 1),
        ("?x;limit=1&Limit=1", 20),
    ],
)
async def test_recent_list_has_20_replays_by_default_and_at_most_50(server, query, count):
    client = await server.player("ann")
    me = await client.me()
    server.sql(
        "INSERT INTO replays SELECT gen_random_uuid(), %s, now(), '{}', 2, 'Zen', 'DrawOne', '1', '1', NULL,"
        " '2026-01-01' FROM generate_series(1, 60)",
        (me.id,),
    )
    await upload(server, client, replay())  # an upload ends the remembered list
    assert len((await recent(server, query)).json) == count


async def test_recent_list_can_be_limited_to_verified_replays(server):
    """The limit counts verified ones. Both lists are remembered, and lose a deleted replay at the same time."""
    client = await server.player("ann")
    me = await client.me()
    best, other = (verified(server.dsn, me.id, score) for score in (700, 600))
    await gather(4, lambda _: upload(server, client, replay()), range(30))
    refuted = await client.upload_replay(replay())
    check(server.dsn, refuted, 7, status="refuted")
    newest = sorted((best, other), reverse=True)  # both were received at the same time
    listed = await recent(server, "?verdict=verified&limit=1")
    assert [each["id"] for each in listed.json] == newest[:1]
    listed = await recent(server, "?verdict=verified")
    assert [(each["id"], each["verdict"]) for each in listed.json] == [(each, "verified") for each in newest]
    assert list(listed.json[0]) == list((await recent(server)).json[0])
    await client.set_listed(best, False)
    assert [each.id for each in await client.recent_replays(verified=True)] == [other]
    await client.delete_replay(other)
    assert (await recent(server, "?verdict=verified")).json == []
    assert (await recent(server, "?verdict=verified&limit=0")).json == []


@pytest.mark.parametrize("path", ["x", "00000000-0000-4000-8000-000000000000", "00000000-0000-4000-8000-00000000000G"])
async def test_unknown_replay_is_a_404(server, path):
    """The id is unknown or malformed."""
    answer = await server.ask("GET", f"/api/replays/{path}", {"If-None-Match": "*"})
    assert (answer.status, answer.json) == (404, {"error": "replay not found"})


async def test_replay_id_has_one_spelling(server):
    """An id is found only in its canonical form."""
    client = await server.player("ann")
    replay_id = (await upload(server, client, replay())).json["id"]
    for spelled in (replay_id.upper(), replay_id.replace("-", ""), f"{{{replay_id}}}"):
        assert (await server.ask("GET", f"/api/replays/{spelled}")).status == 404


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"null", b"{", b"\xff", replay() + b"x", replay(mode="x"), b"[" * 9999]
)
async def test_invalid_replay_is_a_400(server, body):
    """The body isn't a JSON object, or has a wrong field; the service stores nothing."""
    client = await server.player("ann")
    answer = await upload(server, client, body)
    assert answer.status == 400
    assert server.sql("SELECT count(*) FROM replays") == [(0,)]


async def test_classic_replay_improves_the_entry_immediately(server):
    """Replays of other modes, and of players not on the leaderboard, change nothing."""
    client = await server.player("ann")
    await upload(server, client, replay(final_score=9999))
    await opt_in(server, client, "Ann")
    assert await board(server, client) == [("Ann", None, None)]
    await upload(server, client, replay(mode="Zen", final_score=9999))
    assert await board(server, client) == [("Ann", None, None)]
    await upload(server, client, replay(final_score=700.9, time_seconds=95.1))
    assert await board(server, client) == [("Ann", 700, 96)]
    await upload(server, client, replay(final_score=600, time_seconds=99))
    assert await board(server, client) == [("Ann", 700, 96)]


async def test_deleting_an_account_deletes_its_replays(server):
    """The list is empty immediately."""
    client = await server.player("ann")
    replay_id = (await upload(server, client, replay())).json["id"]
    assert len((await recent(server)).json) == 1
    await client.delete_account()
    assert (await recent(server)).json == []
    assert (await server.ask("GET", f"/api/replays/{replay_id}")).status == 404


async def test_simultaneous_uploads_keep_the_quota(reactor, shared_dsn):
    """One of two uploads that fit only alone is refused. Deleting replays frees room."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_REPLAY_QUOTA_MIB": "1"})
    try:
        client = await running.player("ann")
        big = replay(moves="x" * (MIB * 6 // 10))
        answers = await defer.gatherResults([defer.ensureDeferred(upload(running, client, big)) for _ in range(4)])
        assert sorted(answer.status for answer in answers) == [200, 400, 400, 400]
        assert {"error": "replay storage is full"} in [answer.json for answer in answers]
        room = MIB - len(big)
        exact = replay(moves="").replace(b'"moves": ""', b'"moves": "' + b"x" * (room - len(replay(moves=""))) + b'"')
        assert len(exact) == room
        assert (await upload(running, client, exact + b" ")).status == 400
        assert (await upload(running, client, exact)).status == 200
        running.sql("DELETE FROM replays")
        assert (await upload(running, client, big)).status == 200
    finally:
        await running.service.stopService()


texts = st.text(alphabet=st.sampled_from('a"\\\0\n😀é\ud800\udfff'), max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | texts
    | st.sampled_from([1.5, -0.0]).map(float)
    | st.just("HUGE"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def replays(draw):
    """Generate odd but valid JSON: spaces, any key order, doubled keys, any escapes, numbers without bounds."""
    fields = [(json.dumps(name), json.dumps(value)) for name, value in REPLAY_HEADER.items()]
    fields += [
        (json.dumps(name), json.dumps(value)) for name, value in draw(st.lists(st.tuples(texts, values), max_size=4))
    ]
    fields += draw(st.lists(st.sampled_from(fields), max_size=2))
    if draw(st.booleans()):
        depth = draw(st.integers(1, 62))
        fields.append(('"deep"', "[" * depth + "]" * depth))
    space = st.sampled_from(["", " ", "\n\t", "\r\n "])
    parts = [
        f"{draw(space)}{name}{draw(space)}:{draw(space)}{value}{draw(space)}"
        for name, value in draw(st.permutations(fields))
    ]
    body = "{" + ",".join(parts) + "}" + draw(space)
    return body.replace('"HUGE"', draw(st.sampled_from(["1e400", "-1E+9999", "1" * 400, "0.1e-999"]))).encode()


async def test_every_stored_replay_can_be_read(server, full):
    """An odd replay returns 400 or comes back with the same bytes, and no list fails."""
    client = await server.player("ann")
    count = 1_500 if full else 50
    statuses = []

    async def there_and_back(body):
        answer = await upload(server, client, body)
        statuses.append(answer.status)
        if answer.status == 200:
            fetched = await server.ask("GET", f"/api/replays/{answer.json['id']}")
            assert hashlib.sha256(fetched.content).digest() == hashlib.sha256(body).digest()
        else:
            assert (answer.status, list(answer.json)) == (400, ["error"])
        if len(statuses) % 50 == 0:
            assert (await recent(server, "?limit=50")).status == 200

    await gather(8, there_and_back, examples(replays(), count))
    print({status: statuses.count(status) for status in set(statuses)})
    assert statuses.count(200) > 0.8 * count


async def test_lists_shorten_stored_times(server):
    """Version 1.0.0 stored times with up to a megabyte of digits; lists and pages show them as instants."""
    client = await server.player("ann")
    me = await client.me()
    ids = [await client.upload_replay(replay()) for _ in range(20)]
    server.sql("UPDATE replays SET recorded_at = '2026-01-01T00:00:00.' || repeat('0', 1040000) || '1+02:00'")
    server.forget_lists()
    listed = [
        (await recent(server, "?limit=50")).json,
        (await server.ask("GET", "/api/players/ann/replays")).json["replays"],
        (await server.ask("GET", "/api/me/replays", bearer=client.tokens.access_token)).json["replays"],
    ]
    assert [{each["recorded_at"] for each in replays} for replays in listed] == [{"2025-12-31T22:00:00Z"}] * 3
    assert [len(replays) for replays in listed] == [20] * 3
    for page in (f"/players/{me.username}", f"/replays/{ids[0]}"):
        assert "31 December 2025" in (await server.ask("GET", page)).content.decode()


async def test_recent_list_is_read_by_its_index(server):
    """The newest fifty of 4,000 replays are found without reading or sorting the others."""
    client = await server.player("ann")
    me = await client.me()
    server.sql(
        "INSERT INTO replays SELECT gen_random_uuid(), %s, now() - make_interval(secs => n), '{}', 2, 'Zen', 'DrawOne',"
        " '1', '1', NULL, '2026-01-01' FROM generate_series(1, 4000) AS n",
        (me.id,),
    )
    server.sql("ANALYZE replays, public_replays")
    found = plan(server.dsn, PAGE, *END)
    print(found.text)
    assert "public_replays_pkey" in found.text
    assert "Seq Scan on replays" not in found.text
    assert found.buffers < 1_000
