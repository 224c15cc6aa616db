"""The leaderboard over HTTP (docs/protocol.md "The leaderboard")."""

import json

import pytest
from twisted.internet import defer
from twisted.internet.task import deferLater

from tests.harness.concurrency import until
from tests.harness.payloads import progress_of
from tests.harness.postgres import connect, lock_waiters
from tests.harness.service import start
from tests.web.calls import board, opt_in, push

I32 = 2**31 - 1


async def opt_out(server, client):
    return await server.ask("DELETE", "/api/leaderboard/opt-in", bearer=client.tokens.access_token)


async def test_entry_includes_earlier_pushes(server):
    """Later pushes update the entry immediately."""
    client = await server.player("ann")
    await push(server, client, progress_of(stats__best_single_score=700, stats__fastest_win_seconds=95))
    assert await board(server, client) == []
    assert (await opt_in(server, client, " Ann ")).json == {"ok": True}
    assert await board(server, client) == [("Ann", 700, 95)]
    await push(server, client, progress_of(stats__best_single_score=900, stats__fastest_win_seconds=99))
    assert await board(server, client) == [("Ann", 900, 95)]


async def test_player_sees_own_entry(server):
    """The reply has the name, the bests and the visibility. No rate limit counts the request."""
    client, other = await server.player("ann"), await server.player("bob")
    await opt_in(server, other, "Bob")

    async def own():
        answer = await server.ask("GET", "/api/leaderboard/opt-in", bearer=client.tokens.access_token)
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        return answer.json

    fields = ("visible", "display_name", "best_score", "best_time_secs")
    assert list((await own()).items()) == list(zip(fields, (False, None, None, None), strict=True))
    await push(server, client, progress_of(stats__best_single_score=700, stats__fastest_win_seconds=95))
    assert not any((await own()).values())
    await opt_in(server, client, " Ann ")
    assert list((await own()).values()) == [True, "Ann", 700, 95]
    await opt_out(server, client)
    await push(server, client, progress_of(stats__best_single_score=800))
    for _ in range(12):
        assert list((await own()).values()) == [False, "Ann", 800, 95]


async def test_player_without_a_best_is_listed_last(server):
    """Bests that don't count are null."""
    client, other = await server.player("ann"), await server.player("bob")
    await opt_in(server, client, "Ann")
    await opt_in(server, other, "Bob")
    await push(server, other, progress_of(stats__best_single_score=1))
    assert await board(server, client) == [("Bob", 1, None), ("Ann", None, None)]


async def test_entry_returns_with_its_bests_after_opting_in_again(server):
    """A hidden entry continues to improve, and returns under a new name."""
    client = await server.player("ann")
    await opt_in(server, client, "Ann")
    await push(server, client, progress_of(stats__best_single_score=5))
    for _ in range(2):
        assert (await opt_out(server, client)).json == {"ok": True}
    assert await board(server, client) == []
    await push(server, client, progress_of(stats__best_single_score=8))
    await opt_in(server, client, "Anna")
    assert await board(server, client) == [("Anna", 8, None)]


@pytest.mark.parametrize(
    ("score", "seconds", "shown"),
    [(2**32 - 1, 1, (I32, 1)), (I32 + 1, I32 + 1, (I32, None)), (1, 2**64 - 1, (1, None)), (0, 0, (None, None))],
)
async def test_absurd_bests_are_capped_or_ignored(server, score, seconds, shown):
    """Scores end where a client's i32 does; times that no client could read don't count."""
    client = await server.player("ann")
    await opt_in(server, client, "Ann")
    await push(server, client, progress_of(stats__best_single_score=score, stats__fastest_win_seconds=seconds))
    assert await board(server, client) == [("Ann", *shown)]


async def test_entries_are_ordered_by_score_time_and_age(server):
    """Ties are decided by time, then by the earlier entry, then by id. The list has at most a hundred entries."""
    client = await server.player("ann")
    server.sql(
        "INSERT INTO users (id, username, password_hash, created_at)"
        " SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'p' || n, 'x', now()"
        " FROM generate_series(1, 105) AS n"
    )
    rows = [
        (1, "second by time", 10, 6, 0, True),
        (2, "first", 10, 5, 0, True),
        (3, "hidden", 99, 1, 0, False),
        (5, "tie, higher id", 9, None, 0, True),
        (4, "tie, lower id", 9, None, 0, True),
        (6, "later", 9, None, 1, True),
        (7, "no score", None, 1, 0, True),
        (8, "nothing", None, None, 0, True),
    ]
    for number, name, score, seconds, later, visible in rows:
        server.sql(
            "INSERT INTO leaderboard VALUES (('00000000-0000-4000-8000-' || lpad(%s::text, 12, '0'))::uuid,"
            " %s, %s, %s, '2026-01-01T00:00:00Z'::timestamptz + make_interval(secs => %s), %s)",
            (number, name, score, seconds, later, visible),
        )
    server.forget_lists()
    names = [name for name, _, _ in await board(server, client)]
    expected = ["first", "second by time", "tie, lower id", "tie, higher id", "later", "no score", "nothing"]
    assert names == expected
    server.sql(
        "INSERT INTO leaderboard SELECT id, 'x', 1, 1, now(), true FROM users WHERE username LIKE 'p%%'"
        " ON CONFLICT DO NOTHING"
    )
    server.forget_lists()
    assert len(await board(server, client)) == 100


async def test_recorded_at_moves_when_a_best_improves_or_the_entry_is_named(server):
    """A push without a new best doesn't move it."""
    client = await server.player("ann")
    seen = []
    for step in (
        lambda: opt_in(server, client, "Ann"),
        lambda: push(server, client, progress_of(stats__best_single_score=5)),
        lambda: push(server, client, progress_of(stats__best_single_score=4)),
        lambda: push(server, client, progress_of(stats__fastest_win_seconds=50)),
        lambda: opt_in(server, client, "Anna"),
    ):
        await step()
        seen += server.sql("SELECT recorded_at FROM leaderboard")
    assert seen[0] < seen[1] == seen[2] < seen[3] < seen[4]


@pytest.mark.parametrize("name", ["", "  ", "x" * 33, "a\0b", "a\u202eb", 5, None])
async def test_invalid_name_is_a_400_with_the_rule(server, name):
    client = await server.player("ann")
    answer = await opt_in(server, client, name)
    assert answer.status == 400
    assert "display_name" in answer.json["error"]


async def test_deleted_player_leaves_the_leaderboard_immediately(server):
    """Opting in or out afterwards returns 404."""
    client, other = await server.player("ann"), await server.player("bob")
    await opt_in(server, client, "Ann")
    assert len(await board(server, other)) == 1
    tokens = client.tokens
    await client.delete_account()
    assert await board(server, other) == []
    client.tokens = tokens
    assert (await opt_in(server, client, "Ann")).status == 404
    assert (await opt_out(server, client)).status == 404


async def test_change_appears_on_other_nodes_within_a_second(reactor, server):
    other = await start(reactor, server.dsn)
    client = await server.player("ann")
    assert await board(other, client) == []
    await opt_in(server, client, "Ann")
    assert await board(server, client) == [("Ann", None, None)]
    await deferLater(reactor, 1.1)
    assert await board(other, client) == [("Ann", None, None)]
    await other.service.stopService()


@pytest.mark.long
async def test_leaderboard_of_100_000_entries_is_read_by_its_index(server, full):
    """The list needs no sort, and a push updates by the primary key. Both hold from 10,000 entries on."""
    server.sql(
        "INSERT INTO users (id, username, password_hash, created_at)"
        " SELECT gen_random_uuid(), 'p' || n, 'x', now() FROM generate_series(1, %s) AS n",
        (100_000 if full else 10_000,),
    )
    server.sql(
        "INSERT INTO leaderboard SELECT id, 'x', 1 + (random() * 100000)::int, 1 + (random() * 5000)::int, now(), true"
        " FROM users"
    )
    server.sql("ANALYZE leaderboard")

    def plan(sql):
        ((tree,),) = server.sql(f"EXPLAIN (FORMAT JSON) {sql}")
        text = json.dumps(tree)
        print("\n".join(line for (line,) in server.sql(f"EXPLAIN {sql}")))
        return text

    listed = plan(
        "SELECT display_name, best_score, best_time_secs, recorded_at FROM leaderboard WHERE visible ORDER BY"
        " best_score DESC NULLS LAST, best_time_secs ASC NULLS LAST, recorded_at, user_id LIMIT 100"
    )
    assert "leaderboard_ranking" in listed
    assert '"Sort"' not in listed
    ((someone,),) = server.sql("SELECT user_id FROM leaderboard LIMIT 1")
    updated = plan(
        "UPDATE leaderboard SET best_score = greatest(best_score, 5), best_time_secs = least(best_time_secs, 5),"
        f" recorded_at = now() WHERE user_id = '{someone}' AND (greatest(best_score, 5), least(best_time_secs, 5))"
        " IS DISTINCT FROM (best_score, best_time_secs)"
    )
    assert "leaderboard_pkey" in updated
    assert "Seq Scan" not in updated


@pytest.mark.parametrize("change", ["push", "opt in", "delete"])
async def test_hang_up_leaves_no_stale_list(server, reactor, change):
    """A change is shown immediately, even if its client hung up before the commit."""
    client, other = await server.player("ann"), await server.player("bob")
    await opt_in(server, client, "Ann")
    calls = {
        "push": (lambda: push(server, client, progress_of(stats__best_single_score=5)), [("Ann", 5, None)]),
        "opt in": (lambda: opt_in(server, client, "Anna"), [("Anna", None, None)]),
        "delete": (lambda: server.ask("DELETE", "/api/account", bearer=client.tokens.access_token), []),
    }
    call, expected = calls[change]
    holder = connect(server.dsn)
    holder.autocommit = False
    holder.cursor().execute("SELECT 1 FROM users FOR UPDATE")
    going = defer.ensureDeferred(call())
    going.addErrback(lambda _: None)
    await until(reactor, lambda: lock_waiters(server.dsn))
    assert len(await board(server, other)) == 1  # the node remembers the list from now on
    going.cancel()
    await deferLater(reactor, 0.05)  # wait until the hang-up arrives
    holder.rollback()
    holder.close()
    listed = "SELECT display_name, best_score, best_time_secs FROM leaderboard"
    await until(reactor, lambda: server.sql(listed) == expected and server.at_rest)
    assert await board(server, other) == expected
