"""`public_replays` has the listed replays of players who are not suspended (docs/protocol.md "Replays")."""

import pytest

from solisync.acts import players, replays
from solisync.postgres.migrate import load_migrations, migrate
from solisync.storage.paging import END
from solisync.storage.recent_replays import PAGE, RECENT, VERIFIED, VERIFIED_PAGE
from tests.harness.acting import operator
from tests.harness.plans import plan
from tests.harness.players import players as new_players
from tests.harness.postgres import run_sql

FILL = """
    INSERT INTO replays (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, recorded_at)
    SELECT gen_random_uuid(), %s, now() - make_interval(hours => %s, secs => n), '{}', 2, 'Zen', 'DrawOne', '1', '1',
        '2026-01-01'
    FROM generate_series(1, %s) AS n
"""
WRONG = """
    SELECT received_at, id FROM public_replays
    FULL JOIN (
        SELECT received_at, id, true AS listed FROM replays
        WHERE unlisted IS NULL AND user_id NOT IN (SELECT user_id FROM suspensions)
    ) AS listed USING (received_at, id)
    WHERE listed IS NULL OR NOT EXISTS (SELECT FROM public_replays AS public WHERE public.id = listed.id)
"""


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO suspensions (user_id, since, was_visible) VALUES (%(ann)s, now(), false)",
        "DELETE FROM suspensions WHERE user_id = %(bob)s",
        "UPDATE replays SET unlisted = true WHERE user_id = %(ann)s",
        "UPDATE replays SET unlisted = NULL WHERE user_id IN (%(ann)s, %(bob)s)",
        "UPDATE replays SET held = true, unlisted = true WHERE user_id = %(ann)s",
        "DELETE FROM replays WHERE user_id = %(ann)s",
        "DELETE FROM users WHERE id IN (%(ann)s, %(bob)s)",
        "INSERT INTO replays SELECT gen_random_uuid(), user_id, received_at, body, size, mode, draw_mode, final_score,"
        " time_seconds, seed, recorded_at, unlisted FROM replays",
    ],
    ids=lambda statement: " ".join(statement.split()[:3]),
)
def test_statements_of_1_0_0_keep_the_table_current(server, statement):
    """Ann has one unlisted replay, and Bob is suspended with the same replays."""
    (ann, *_), (bob, *_) = new_players(server.dsn, 2)
    for player in (ann, bob):
        server.sql(FILL, (player, 0, 3))
        unlist = (
            "UPDATE replays SET unlisted = true WHERE id = (SELECT min(id::text)::uuid FROM replays WHERE user_id = %s)"
        )
        server.sql(unlist, (player,))
    server.sql("INSERT INTO suspensions (user_id, since, was_visible) VALUES (%s, now(), false)", (bob,))
    assert server.sql("SELECT count(*) FROM public_replays") == [(2,)]
    server.sql(statement, {"ann": ann, "bob": bob})
    assert server.sql(WRONG) == []


async def test_suspension_hides_replays_until_it_ends(server, reactor):
    """A replay that an operator lists during the suspension returns too."""
    [(ann, *_)] = new_players(server.dsn, 1)
    server.sql(FILL, (ann, 0, 3))
    ((first,),) = server.sql("SELECT min(id::text) FROM replays")
    listed = "SELECT count(*) FROM public_replays"
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(replays.unlist, first)
        assert server.sql(listed) == [(2,)]
        await acting.perform(players.suspend, ann)
        await acting.perform(replays.list_again, first)
        assert server.sql(listed) == [(0,)]
        await acting.perform(players.unsuspend, ann)
        assert server.sql(listed) == [(3,)]


@pytest.mark.parametrize("query", [RECENT, VERIFIED], ids=["recent", "verified"])
def test_recent_list_reads_no_replay_of_a_suspended_player(server, query):
    """The number and the age of the replays don't matter."""
    (ann, *_), (bob, *_) = new_players(server.dsn, 2)
    server.sql(FILL, (ann, 1, 60))
    server.sql(FILL, (bob, 0, 4_000))
    server.sql("INSERT INTO suspensions (user_id, since, was_visible) VALUES (%s, now(), false)", (bob,))
    server.sql("VACUUM ANALYZE public_replays, replays")
    found = plan(server.dsn, query)
    assert found.buffers < 1_000, found.text


async def test_upgrade_adds_only_the_newest_replays(reactor, empty_database):
    """The migration takes 20,000 replays, so that writers wait only briefly. The list reads older replays directly."""
    first, *later = load_migrations()[:1], load_migrations()
    await migrate(reactor, empty_database, first)
    [(ann, *_), (bob, *_), (cyd, *_)] = new_players(empty_database, 3)
    for player, hours, count in ((ann, 9, 20), (bob, 0, 20_010), (cyd, 8, 5)):
        run_sql(empty_database, FILL, (player, hours, count))
    suspend = "INSERT INTO suspensions (user_id, since, was_visible) VALUES (%s, now(), false)"
    run_sql(empty_database, suspend, (cyd,))
    await migrate(reactor, empty_database, later[0])
    assert run_sql(empty_database, "SELECT count(*) FROM public_replays") == [(20_000,)]
    run_sql(empty_database, suspend, (bob,))
    assert len(run_sql(empty_database, RECENT.sql)) == 20
    assert run_sql(empty_database, "SELECT count(*) FROM public_replays") == [(0,)]
    run_sql(empty_database, "DELETE FROM suspensions")
    assert run_sql(empty_database, "SELECT count(*) FROM public_replays") == [(20_000,)]
    assert len(run_sql(empty_database, RECENT.sql)) == 50


async def all_pages(client, limit, **more):
    """Return the ids on all pages, and the number of pages."""
    ids, position, count = [], "", 0
    while position is not None:
        page = await client.recent_replays(limit, before=position, **more)
        ids += [each.id for each in page.replays]
        position, count = page.next, count + 1
    return ids, count


def newest(server, condition="true"):
    """Return the ids of the listed replays of players who aren't suspended, newest first."""
    public = "unlisted IS NULL AND user_id NOT IN (SELECT user_id FROM suspensions)"
    order = "ORDER BY received_at DESC, id DESC"
    return [id for (id,) in server.sql(f"SELECT id::text FROM replays WHERE {public} AND {condition} {order}")]


async def test_each_page_of_recent_replays_leads_to_the_next(server):
    """The pages go on with replays that are older than the table, without the replays of a suspended player."""
    client = await server.player("cyd")
    (ann, *_), (bob, *_) = new_players(server.dsn, 2)
    server.sql(FILL, (ann, 0, 70))
    server.sql(FILL, (bob, 0, 70))
    server.sql(
        "UPDATE replays SET received_at = date_trunc('minute', received_at)"
    )  # the id decides between equal times
    server.sql("INSERT INTO public_replays_begin (since) SELECT received_at FROM replays ORDER BY 1 OFFSET 70 LIMIT 1")
    server.sql("DELETE FROM public_replays")
    server.sql(
        "INSERT INTO public_replays SELECT received_at, id FROM replays"
        " WHERE received_at >= (SELECT since FROM public_replays_begin)"
    )
    try:
        server.sql("INSERT INTO suspensions (user_id, since, was_visible) VALUES (%s, now(), false)", (bob,))
        for limit in (1, 20, 50):
            assert (await all_pages(client, limit))[0] == newest(server)
        assert (await client.recent_replays(0, before="")).next is None
    finally:
        server.sql("DELETE FROM public_replays_begin")


async def test_pages_of_verified_replays_search_a_bounded_number(server):
    """A page without a verified replay leads to the next one; the last has null."""
    client = await server.player("cyd")
    [(ann, *_)] = new_players(server.dsn, 1)
    server.sql(FILL, (ann, 0, 2_100))
    server.sql(
        "INSERT INTO verdicts (replay_id, status, ruleset, undos, score, moves, boards, engine, checked_at)"
        " SELECT id, 'verified', '2026-05-19', 0, 1, 1, '{}', 1, now() FROM replays ORDER BY received_at LIMIT 5"
    )
    verified = newest(server, "id IN (SELECT replay_id FROM verdicts)")
    ids, count = await all_pages(client, 2, verified=True)
    assert (ids, count) == (verified, 5)  # two pages find nothing, three find five
    server.sql("VACUUM ANALYZE public_replays, replays")
    found = plan(server.dsn, VERIFIED_PAGE, *END)
    assert found.buffers < 5_000, found.text
    assert plan(server.dsn, PAGE, *END).buffers < 600


@pytest.mark.parametrize("query", ["before=x", "before&before=", f"before={'A' * 33}", "before=&limit=x"])
async def test_wrong_position_in_the_recent_list_is_a_400(server, query):
    answer = await server.ask("GET", f"/api/replays/recent?{query}")
    assert (answer.status, answer.headers["error-code"]) == (400, "bad_query")


async def test_recent_list_without_before_is_an_array(server):
    assert (await server.ask("GET", "/api/replays/recent")).json == []
    for query in ("before=", "before"):
        assert (await server.ask("GET", f"/api/replays/recent?{query}")).json == {"replays": [], "next": None}
