"""A player's own replays: listed page by page, hidden from public lists, deleted (docs/protocol.md "Replays")."""

import time
from base64 import urlsafe_b64encode

import pytest
from twisted.internet.task import deferLater

from tests.harness.concurrency import gather
from tests.harness.payloads import replay

CHARGE = 4_096
UNKNOWN = "00000000-0000-4000-8000-000000000000"
NO_SUCH = {"error": "replay not found"}
FIELDS = ["id", "username", "seed", "deal", "draw_mode", "mode", "time_seconds", "final_score", "recorded_at"]
FILL = """
    INSERT INTO replays
    SELECT gen_random_uuid(), %s, {received}, '{{}}', 2, 'Zen', 'DrawOne', '1', '1', NULL, '2026-01-01'
    FROM generate_series(1, %s) AS n
"""


def fill(server, user_id, count, received="now() - make_interval(secs => n)"):
    """Store many replays of a player."""
    server.sql(FILL.format(received=received), (user_id, count))


async def ask(server, client, method, path, body=None):
    return await server.ask(method, path, body=body, bearer=client.tokens.access_token)


async def all_pages(client, limit, between=None):
    """Return the ids on all pages."""
    ids, position = [], None
    while True:
        page = await client.own_replays(limit, position)
        ids += [each.id for each in page.replays]
        position = page.next
        if position is None:
            return ids
        if between is not None:
            await between()


async def recent_ids(client):
    return [line.id for line in await client.recent_replays(50)]


async def test_player_lists_own_replays(server):
    """The reply has the fields of the recent list, `listed` and the sizes, and no replay of other players."""
    ann, bob = await server.player("ann"), await server.player("bob")
    spelled = replay(final_score="SCORE").replace(b'"SCORE"', b"1.50")
    first = await ann.upload_replay(spelled)
    await bob.upload_replay(replay())
    second = await ann.upload_replay(replay(mode={"Difficulty": "Hard"}))
    await ann.set_listed(first, False)
    answer = await ask(server, ann, "GET", "/api/me/replays")
    assert list(answer.json) == ["replays", "next"]
    newest, oldest = answer.json["replays"]
    assert list(newest) == [*FIELDS, "received_at", "verdict", "listed", "size"]
    assert ([newest["id"], oldest["id"]], answer.json["next"]) == ([second, first], None)
    assert (newest["listed"], newest["mode"], newest["username"]) == (True, "Difficulty", "ann")
    assert (oldest["listed"], oldest["size"]) == (False, len(spelled))
    assert b'"final_score":1.50' in answer.content
    assert answer.headers["cache-control"] == "no-store"


async def test_each_page_leads_to_the_next(server):
    """The last page has null. Replays that were received in the same microsecond are all listed."""
    client = await server.player("ann")
    fill(server, (await client.me()).id, 10, "'2026-11-20T12:00:00.123456Z'")
    stored = [each for (each,) in server.sql("SELECT id::text FROM replays ORDER BY received_at DESC, id DESC")]
    for limit in (1, 3, 5, 9, 10, 50):
        assert await all_pages(client, limit) == stored
    assert (await client.own_replays(10)).next is None
    nothing = await client.own_replays(0)
    assert (nothing.replays, nothing.next) == ([], None)
    assert len((await client.own_replays(999)).replays) == 10
    assert (await (await server.player("bob")).own_replays()).replays == []


async def test_pages_distinguish_microseconds(server):
    """A page may end between two replays a microsecond apart."""
    client = await server.player("ann")
    fill(server, (await client.me()).id, 3, "'2026-11-20T12:00:00.999997Z'::timestamptz + n * interval '1 microsecond'")
    assert len(set(await all_pages(client, 1))) == 3


async def test_position_remains_valid_after_its_row_is_deleted(server):
    """The next page repeats nothing and skips nothing."""
    client = await server.player("ann")
    fill(server, (await client.me()).id, 9)
    stored = [each for (each,) in server.sql("SELECT id::text FROM replays ORDER BY received_at DESC")]
    page = await client.own_replays(4)
    for replay_id in stored[2:6]:
        await client.delete_replay(replay_id)
    rest = await client.own_replays(4, page.next)
    assert [each.id for each in page.replays + rest.replays] == stored[:4] + stored[6:]


@pytest.mark.parametrize("time", [-62135596800 * 10**6, 253402300799 * 10**6 + 999_999, 0])
async def test_position_may_have_any_time(server, time):
    """Times reach from the first microsecond of the year 1 to the last of 9999."""
    client = await server.player("ann")
    await client.upload_replay(replay())
    position = urlsafe_b64encode(time.to_bytes(8, "big", signed=True) + bytes(16)).decode()
    assert len((await client.own_replays(5, position)).replays) == (time > 10**17)


async def test_thousands_are_paged_while_new_ones_arrive(server, figure, full):
    """Every replay of the beginning is listed exactly once; new ones needn't be."""
    count = 10_000 if full else 2_000
    client = await server.player("ann")
    fill(server, (await client.me()).id, count, "now() - make_interval(secs => n / 7)")
    stored = [each for (each,) in server.sql("SELECT id::text FROM replays ORDER BY received_at DESC, id DESC")]
    arrived = []

    async def between():
        if len(arrived) < 20:
            arrived.append(await client.upload_replay(replay()))

    began = time.monotonic()
    ids = await all_pages(client, 50, between)
    figure(f"{count:,} replays in pages of 50, {len(arrived)} uploads beside them: {time.monotonic() - began:.1f} s")
    assert ids == stored
    assert len(arrived) == 20


async def test_unlisted_replay_leaves_the_recent_list_immediately(server):
    """Its link works, and listing it shows it again. Both requests may be repeated."""
    client = await server.player("ann")
    kept, hidden = await client.upload_replay(replay()), await client.upload_replay(replay())
    assert await recent_ids(client) == [hidden, kept]
    for _ in range(2):
        await client.set_listed(hidden, False)
        assert await recent_ids(client) == [kept]
    assert await client.replay(hidden) == replay()
    for _ in range(2):
        await client.set_listed(hidden, True)
        assert await recent_ids(client) == [hidden, kept]


async def test_deleted_replay_is_gone_immediately(server, no_lost_failures):
    """The recent list, the own list and the link no longer have it, and its charge is freed.

    A second deletion returns 404.
    """
    client = await server.player("ann")
    kept, deleted = await client.upload_replay(replay()), await client.upload_replay(replay())
    assert server.sql("SELECT used_bytes FROM replay_usage") == [(2 * CHARGE,)]
    assert await recent_ids(client) == [deleted, kept]
    await client.delete_replay(deleted)
    assert await recent_ids(client) == [kept]
    assert [each.id for each in (await client.own_replays()).replays] == [kept]
    assert server.sql("SELECT used_bytes FROM replay_usage") == [(CHARGE,)]
    for path in (f"/api/replays/{deleted}", f"/api/replays/{deleted}/listed"):
        method, body = ("PUT", {"listed": True}) if path.endswith("listed") else ("DELETE", None)
        answer = await ask(server, client, method, path, body)
        assert (answer.status, answer.json) == (404, NO_SUCH)
    assert (await server.ask("GET", f"/api/replays/{deleted}")).status == 404


async def test_leaderboard_keeps_the_best_of_a_deleted_replay(server):
    client = await server.player("ann")
    await client.opt_in("Ann")
    await client.delete_replay(await client.upload_replay(replay(final_score=700)))
    assert [entry.best_score for entry in await client.leaderboard()] == [700]


async def test_other_nodes_show_a_removed_replay_for_at_most_a_second(nodes, reactor):
    """The first node unlists or deletes the replay."""
    here, there = nodes
    client = await here.player("ann")
    elsewhere = there.client()
    for hide in (lambda each: client.set_listed(each, False), client.delete_replay):
        replay_id = await client.upload_replay(replay())
        while replay_id not in await recent_ids(elsewhere):
            await deferLater(reactor, 0.05)
        await hide(replay_id)
        hidden = time.monotonic()
        assert replay_id not in await recent_ids(client)
        while replay_id in await recent_ids(elsewhere):
            assert time.monotonic() < hidden + 10
            await deferLater(reactor, 0.02)


@pytest.mark.parametrize("bad", [UNKNOWN, "x", UNKNOWN[:-1] + "G", UNKNOWN.replace("-", "")])
async def test_replay_of_another_player_is_a_404(server, bad):
    """An unknown id returns the same, never 403, and nothing happens."""
    ann, bob = await server.player("ann"), await server.player("bob")
    theirs = await bob.upload_replay(replay())
    for replay_id in (theirs, bad):
        for method, path, body in (("DELETE", "", None), ("PUT", "/listed", {"listed": False})):
            answer = await ask(server, ann, method, f"/api/replays/{replay_id}{path}", body)
            assert (answer.status, answer.json, answer.headers["error-code"]) == (404, NO_SUCH, "replay_not_found")
    assert await recent_ids(ann) == [theirs]


@pytest.mark.parametrize("body", [b"", b"{}", b'{"listed": null}', b'{"listed": 1}', b'{"listed": "true"}', b"true"])
async def test_listed_must_be_true_or_false(server, body):
    """Another value returns 400 and changes nothing."""
    client = await server.player("ann")
    replay_id = await client.upload_replay(replay())
    answer = await ask(server, client, "PUT", f"/api/replays/{replay_id}/listed", body)
    assert answer.status == 400
    assert await recent_ids(client) == [replay_id]


async def test_simultaneous_changes_leave_no_charge(server, no_deadlocks):
    """Uploads, deletions, unlisting and the deletion of the account run together: no request fails with 500."""
    client, other = await server.player("ann"), await server.player("bob")
    token = client.tokens.access_token
    ids = [await client.upload_replay(replay()) for _ in range(20)]
    statuses = []

    async def one(number):
        replay_id = ids[number % 20]
        method, path, body = [
            ("DELETE", f"/api/replays/{replay_id}", None),
            ("PUT", f"/api/replays/{replay_id}/listed", {"listed": number % 2 == 0}),
            ("POST", "/api/replays", replay()),
            ("GET", "/api/me/replays", None),
        ][number % 4]
        statuses.append((await server.ask(method, path, body=body, bearer=token)).status)

    def act(number):
        return client.delete_account() if number == 60 else one(number)

    await gather(12, act, range(80))
    assert set(statuses) <= {200, 404}
    assert server.sql("SELECT count(*) FROM replays") == server.sql("SELECT count(*) FROM replay_usage") == [(0,)]
    assert (await other.own_replays()).replays == []


async def test_upload_of_an_older_node_is_listed(server):
    """Its statement doesn't set `listed`. An older node lists unlisted replays too."""
    client = await server.player("ann")
    fill(server, (await client.me()).id, 1)
    ((replay_id,),) = server.sql("SELECT id::text FROM replays")
    assert await recent_ids(client) == [replay_id]
    await client.set_listed(replay_id, False)
    assert await recent_ids(client) == []
    old = "SELECT id::text FROM replays ORDER BY received_at DESC, id DESC LIMIT 50"
    assert server.sql(old) == [(replay_id,)]
