"""Lists stay quick however long they are: a million replays, of which the newest hundred thousand are unlisted."""

import pytest

from solisync.postgres.migrate import load_migrations, migrate
from solisync.storage import export, own_replays, paging, replays
from tests.harness.plans import plan
from tests.harness.players import players
from tests.harness.postgres import run_sql

PLAYERS = 50
FILL = """
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, recorded_at, unlisted)
    SELECT gen_random_uuid(), (%s::uuid[])[1 + n %% 50], now() - make_interval(secs => n), '{}', 2, 'Zen', 'DrawOne',
        '1', '1', '2026-01-01', CASE WHEN n <= %s THEN true END
    FROM generate_series(1, %s) AS n
"""
FILL_EVENTS = """
    INSERT INTO analytics_events (id, session_id, name_id, event_type, payload, client_time, received_at)
    SELECT gen_random_uuid(), 's', 1 + n %% 50, 'won', '{}', now(), now() - make_interval(secs => n)
    FROM generate_series(1, %s) AS n
"""
NAMES = "INSERT INTO analytics_names (name, seen_on) SELECT username, now() FROM users ORDER BY username"
OWN_NAME = "SELECT analytics_names.id FROM analytics_names JOIN users ON name = username WHERE users.id = %s"
HIDE = "UPDATE replays SET unlisted = true WHERE received_at > now() - make_interval(secs => %s)"
NTH = "SELECT received_at, id::text FROM replays WHERE user_id = %s ORDER BY 1 DESC, 2 DESC OFFSET %s LIMIT 1"


@pytest.mark.short
async def test_no_list_reads_more_than_it_shows(reactor, empty_database, full, figure):
    """Each is read by an index in its own order, and touches as little with many replays as with few."""
    count, unlisted = (1_000_000, 100_000) if full else (20_000, 2_000)
    await migrate(reactor, empty_database, load_migrations())
    users = [user for user, _, _ in players(empty_database, PLAYERS)]
    run_sql(empty_database, FILL, (users, unlisted, count))
    run_sql(empty_database, NAMES)
    run_sql(empty_database, FILL_EVENTS, (count,))
    run_sql(empty_database, "ANALYZE replays, analytics_events, analytics_names")
    ((own_name,),) = run_sql(empty_database, OWN_NAME, (users[0],))
    ((*middle,),) = run_sql(empty_database, NTH, (users[0], count // PLAYERS // 2))
    lists = {
        "recent": (replays.RECENT, (), "replays_listed"),
        "own, first page": (own_replays.LIST, (users[0], *paging.END), "replays_of_player"),
        "own, in the middle": (own_replays.LIST, (users[0], *middle), "replays_of_player"),
        "export, beginning": (export.BEGIN, (users[0],), "replays_of_player"),
        "export, replays": (export.REPLAYS, (users[0], *middle, paging.END.time), "replays_of_player"),
        "export, events": (export.EVENTS, (own_name, *middle, paging.END.time), "analytics_events_of_name"),
    }
    told = f"of {count:,}, the newest {unlisted:,} unlisted"
    for name, (statement, parameters, index) in lists.items():
        found = plan(empty_database, statement, *parameters)
        figure(f"{name}, {told}: {found.milliseconds:.2f} ms, {found.buffers} buffers")
        assert "Seq Scan on replays" not in found.text
        assert "Seq Scan on analytics_events" not in found.text
        assert found.buffers < 500  # the fifty that are shown, and the verdict of each
        if full:  # of few, to sort all of one player's may be as quick
            assert index in found.text
            # there of the fifty that are shown, and of the sessions of one player
            assert ("Sort" in found.text) == (name in ("recent", "export, beginning"))


async def test_what_was_unlisted_just_now_costs_little(reactor, empty_database, full, figure):
    """Before any vacuum the index still has entries of what was unlisted: they are passed by without being read."""
    count, unlisted = (1_000_000, 100_000) if full else (20_000, 2_000)
    await migrate(reactor, empty_database, load_migrations())
    run_sql(empty_database, FILL, ([user for user, _, _ in players(empty_database, PLAYERS)], 0, count))
    run_sql(empty_database, "ANALYZE replays")
    run_sql(empty_database, HIDE, (unlisted,))
    found = plan(empty_database, replays.RECENT)
    figure(f"recent, {unlisted:,} unlisted just now: {found.milliseconds:.2f} ms, {found.buffers} buffers")
    assert "replays_listed" in found.text
    assert found.milliseconds < 100
