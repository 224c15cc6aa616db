"""`public_replays` has the listed replays of players who are not suspended (docs/protocol.md "Replays")."""

from datetime import UTC, datetime, timedelta

import pytest

from solisync.acts import players, replays
from solisync.postgres.migrate import load_migrations, migrate
from solisync.storage.paging import END
from solisync.storage.replays.recent_replays import PAGE, VERIFIED_PAGE
from tests.harness.acting import operator
from tests.harness.boards import verified
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


VERIFY = """
    INSERT INTO verdicts (replay_id, status, ruleset, undos, score, moves, boards, engine, checked_at)
    SELECT id, 'verified', '2026-05-19', 0, 1, 1, '{}', 1, now() FROM replays ORDER BY received_at LIMIT %s
"""


@pytest.mark.parametrize("query", [PAGE, VERIFIED_PAGE], ids=["recent", "verified"])
def test_list_reads_no_replay_of_a_suspended_player(server, query):
    """The number and the age of the replays don't matter."""
    (ann, *_), (bob, *_) = new_players(server.dsn, 2)
    server.sql(FILL, (ann, 1, 60))
    server.sql(FILL, (bob, 0, 4_000))
    server.sql(VERIFY, (4_060,))
    server.sql("INSERT INTO suspensions (user_id, since, was_visible) VALUES (%s, now(), false)", (bob,))
    server.sql("VACUUM ANALYZE public_replays, replays, verdicts")
    found = plan(server.dsn, query, *END)
    assert found.buffers < 1_000, found.text


def test_list_of_verified_replays_reads_no_other(server):
    """Any number of newer uploads may have no verdict."""
    [(ann, *_)] = new_players(server.dsn, 1)
    server.sql(FILL, (ann, 0, 4_000))
    server.sql(VERIFY, (60,))
    server.sql("VACUUM ANALYZE public_replays, replays, verdicts")
    found = plan(server.dsn, VERIFIED_PAGE, *END)
    assert found.buffers < 1_000, found.text


async def test_no_number_of_uploads_empties_the_list_of_verified_replays(server):
    """A thousand uploads of one account take six seconds; the verified win before them stays on the list."""
    client = await server.player("cyd")
    [(ann, *_)] = new_players(server.dsn, 1)
    win = verified(server.dsn, ann, 300, received_at=datetime.now(UTC) - timedelta(days=1))
    server.sql(FILL, (ann, 0, 1_200))
    assert [each.id for each in await client.recent_replays(verified=True)] == [win]
    assert (await all_pages(client, 50, verified=True)) == ([win], 1)


@pytest.mark.parametrize(
    ("statement", "listed"),
    [
        ("UPDATE verdicts SET status = 'refuted', ruleset = NULL, undos = NULL, score = NULL, moves = NULL", 0),
        ("UPDATE replays SET unlisted = true", 0),
        ("UPDATE replays SET unlisted = true; UPDATE replays SET unlisted = NULL", 1),
        ("INSERT INTO suspensions SELECT user_id, now(), NULL, NULL, false FROM replays", 0),
        ("INSERT INTO suspensions SELECT user_id, now(), NULL, NULL, false FROM replays; DELETE FROM suspensions", 1),
        ("DELETE FROM verdicts; UPDATE replays SET unlisted = true; UPDATE replays SET unlisted = NULL", 0),
    ],
)
def test_statements_of_1_1_0_keep_the_mark_of_verified_replays(server, statement, listed):
    """Triggers set it, because that version writes no such column."""
    [(ann, *_)] = new_players(server.dsn, 1)
    verified(server.dsn, ann, 300)
    marked = "SELECT count(*) FROM public_replays WHERE verified"
    assert server.sql(marked) == [(1,)]
    server.sql(statement)
    assert server.sql(marked) == [(listed,)]


@pytest.mark.long
@pytest.mark.parametrize("interrupted", [False, True])
async def test_upgrade_adds_and_marks_all_replays(reactor, empty_database, interrupted):
    """A database of 1.0.0 gets the newest 20,000 in a moment, and all others in batches, also after a kill."""
    steps = load_migrations()
    await migrate(reactor, empty_database, steps[:1])
    (ann, *_), (bob, *_), (cyd, *_) = new_players(empty_database, 3)
    for player, hours, count in ((ann, 99, 2_100), (bob, 0, 20_010), (cyd, 98, 5)):
        run_sql(empty_database, FILL, (player, hours, count))
    run_sql(empty_database, VERIFY, (2_300,))
    suspend = "INSERT INTO suspensions (user_id, since, was_visible) VALUES (%s, now(), false)"
    run_sql(empty_database, suspend, (cyd,))
    last = next(number for number, step in enumerate(steps) if step.in_batches)
    await migrate(reactor, empty_database, steps[:last])
    assert run_sql(empty_database, "SELECT count(*), count(*) FILTER (WHERE verified) FROM public_replays") == [
        (20_000, 0)
    ]
    if interrupted:  # after the first batch of older replays
        ends = "SELECT received_at FROM replays WHERE received_at < %s ORDER BY received_at DESC OFFSET 100 LIMIT 1"
        ((since,),) = run_sql(empty_database, "SELECT since FROM public_replays_begin")
        ((begins,),) = run_sql(empty_database, ends, (since,))
        run_sql(
            empty_database,
            "INSERT INTO public_replays SELECT received_at, id, is_verified(id) FROM replays"
            " WHERE received_at < %s AND received_at >= %s AND user_id <> %s",
            (since, begins, cyd),
        )
        run_sql(empty_database, "UPDATE public_replays_begin SET since = %s", (begins,))
    await migrate(reactor, empty_database, steps)
    assert run_sql(empty_database, "SELECT count(*) FROM public_replays_begin") == [(0,)]
    assert run_sql(empty_database, WRONG) == []
    wrongly = "SELECT count(*) FROM public_replays WHERE verified <> is_verified(id)"
    assert run_sql(empty_database, wrongly) == [(0,)]
    assert run_sql(empty_database, "SELECT count(*) FROM public_replays WHERE verified") == [(2_295,)]


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


@pytest.mark.parametrize("only_verified", [False, True])
async def test_each_page_of_recent_replays_leads_to_the_next(server, only_verified):
    """The pages leave out the replays of a suspended player."""
    client = await server.player("cyd")
    (ann, *_), (bob, *_) = new_players(server.dsn, 2)
    server.sql(FILL, (ann, 0, 70))
    server.sql(FILL, (bob, 0, 70))
    server.sql("UPDATE replays SET received_at = date_trunc('minute', received_at)")  # the id decides between equals
    server.sql("DELETE FROM public_replays")
    server.sql("INSERT INTO public_replays SELECT received_at, id FROM replays")
    server.sql(VERIFY, (130,))
    server.sql("INSERT INTO suspensions (user_id, since, was_visible) VALUES (%s, now(), false)", (bob,))
    found = newest(server, "is_verified(id)" if only_verified else "true")
    assert len(found) > 50
    for limit in (1, 20, 50):
        assert (await all_pages(client, limit, verified=only_verified))[0] == found
    assert (await client.recent_replays(0, before="")).next is None


@pytest.mark.parametrize("only_verified", [False, True])
async def test_list_leaves_out_a_suspended_player_before_the_batches(server, only_verified):
    """The replays of a large account leave it in batches, some minutes after the suspension."""
    client = await server.player("cyd")
    (ann, *_), (bob, *_) = new_players(server.dsn, 2)
    kept = verified(server.dsn, ann, 300)
    verified(server.dsn, bob, 300, received_at=datetime.now(UTC))
    server.sql("INSERT INTO suspensions (user_id, since, was_visible) VALUES (%s, now(), false)", (bob,))
    server.sql("INSERT INTO public_replays SELECT received_at, id, true FROM replays WHERE user_id = %s", (bob,))
    assert [each.id for each in await client.recent_replays(verified=only_verified)] == [kept]


async def test_recent_list_without_before_is_an_array(server):
    assert (await server.ask("GET", "/api/replays/recent")).json == []
    for query in ("before=", "before"):
        assert (await server.ask("GET", f"/api/replays/recent?{query}")).json == {"replays": [], "next": None}
