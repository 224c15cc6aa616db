"""Lists stay quick with a million replays, of which the newest hundred thousand are unlisted."""

import pytest

from solisync.storage import html_pages, paging
from solisync.storage.players import export
from solisync.storage.replays import own_replays, recent_replays, replays
from tests.harness.plans import plan
from tests.harness.players import players
from tests.harness.postgres import run_sql

PLAYERS = 50
# Without triggers and foreign keys each row costs a tenth.
WITHOUT_TRIGGERS = "SET session_replication_role = replica; "
FILL = (
    WITHOUT_TRIGGERS
    + """
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, recorded_at, unlisted)
    SELECT gen_random_uuid(), (%s::uuid[])[1 + n %% 50], now() - make_interval(secs => n), '{}', 2, 'Zen', 'DrawOne',
        '1', '1', '2026-01-01', CASE WHEN n <= %s THEN true END
    FROM generate_series(1, %s) AS n
"""
)
FILL_EVENTS = """
    INSERT INTO analytics_events (id, session_id, name_id, event_type, payload, client_time, received_at)
    SELECT gen_random_uuid(), 's', 1 + n %% 50, 'won', '{}', now(), now() - make_interval(secs => n)
    FROM generate_series(1, %s) AS n
"""
NAMES = "INSERT INTO analytics_names (name, seen_on) SELECT username, now() FROM users ORDER BY username"
OWN_NAME = "SELECT analytics_names.id FROM analytics_names JOIN users ON name = username WHERE users.id = %s"
PUBLISH = (
    "INSERT INTO public_replays SELECT received_at, id, is_verified(id) FROM replays WHERE unlisted IS NULL"
    " ON CONFLICT DO NOTHING"
)
# Of so many replays one is verified; of 0, none.
VERDICTS = (
    WITHOUT_TRIGGERS
    + """
    INSERT INTO verdicts (replay_id, status, ruleset, undos, score, moves, checked_at, engine)
    SELECT id, status, CASE WHEN status = 'verified' THEN '2026-05-19' END, CASE WHEN status = 'verified' THEN 0 END,
        CASE WHEN status = 'verified' THEN 7 END, CASE WHEN status = 'verified' THEN 100 END, now(), 1
    FROM (
        SELECT id, CASE hashtext(id::text) %% nullif(%(share)s, 0) WHEN 0 THEN 'verified' ELSE 'refuted' END AS status
        FROM replays
    ) AS replay
"""
)
OF_GAMES = WITHOUT_TRIGGERS + "UPDATE replays SET game_digest = sha256(id::text::bytea)"
OLDEST_LISTED = (
    WITHOUT_TRIGGERS
    + """
    UPDATE replays SET unlisted = CASE WHEN id NOT IN (
        SELECT id FROM replays WHERE user_id = %(player)s ORDER BY received_at LIMIT 10
    ) THEN true END WHERE user_id = %(player)s
"""
)
NTH = "SELECT received_at, id::text FROM replays WHERE user_id = %s ORDER BY 1 DESC, 2 DESC OFFSET %s LIMIT 1"


@pytest.mark.short
async def test_lists_read_no_more_than_they_show(migrated_database, full, figure):
    """Each list uses an index in its own order, and reads as little with many replays as with few."""
    count, unlisted = (1_000_000, 100_000) if full else (20_000, 2_000)
    users = [user for user, _, _ in players(migrated_database, PLAYERS)]
    run_sql(migrated_database, FILL, (users, unlisted, count))
    run_sql(migrated_database, NAMES)
    run_sql(migrated_database, FILL_EVENTS, (count,))
    run_sql(migrated_database, PUBLISH)
    run_sql(migrated_database, "ANALYZE replays, public_replays, analytics_events, analytics_names")
    ((own_name,),) = run_sql(migrated_database, OWN_NAME, (users[0],))
    ((*middle,),) = run_sql(migrated_database, NTH, (users[0], count // PLAYERS // 2))
    lists = {
        "recent": (recent_replays.PAGE, paging.END, "public_replays_pkey"),
        "recent, in the middle": (recent_replays.PAGE, middle, "public_replays_pkey"),
        "own, first page": (own_replays.LIST, (users[0], *paging.END), "replays_of_player"),
        "own, in the middle": (own_replays.LIST, (users[0], *middle), "replays_of_player"),
        "export, beginning": (export.begin.statement, (users[0],), "replays_of_player"),
        "export, replays": (export.REPLAYS, (users[0], *middle, paging.END.time), "replays_of_player"),
        "export, events": (export.EVENTS, (own_name, *middle, paging.END.time), "analytics_events_of_name"),
    }
    told = f"of {count:,}, the newest {unlisted:,} unlisted"
    for name, (statement, parameters, index) in lists.items():
        found = plan(migrated_database, statement, *parameters)
        figure(f"{name}, {told}: {found.milliseconds:.2f} ms, {found.buffers} buffers")
        assert "Seq Scan on replays" not in found.text
        assert "Seq Scan on analytics_events" not in found.text
        assert found.buffers < 1_000  # the fifty that are shown, and the player and the verdict of each
        if full:  # of few, to sort all of one player's may be as quick
            assert index in found.text
            # there of the fifty that are shown, and of the sessions of one player
            assert ("Sort" in found.text) == (name == "export, beginning")


@pytest.mark.short
async def test_player_with_few_listed_replays_is_quick_to_show(migrated_database, full, figure):
    """The player has unlisted all but the oldest ten; every page reads only those ten."""
    count = 1_000_000 if full else 20_000
    (hiding, *_), (other, *_), *_ = players(migrated_database, PLAYERS)
    users = [user for (user,) in run_sql(migrated_database, "SELECT id::text FROM users")]
    run_sql(migrated_database, FILL, (users, 0, count))
    run_sql(migrated_database, OLDEST_LISTED, {"player": hiding})
    run_sql(migrated_database, "VACUUM ANALYZE replays")
    for name, player, shown in (("lists ten", hiding, 10), ("lists all", other, 51)):
        ((username,),) = run_sql(migrated_database, "SELECT username FROM users WHERE id = %s", (player,))
        ((*middle,),) = run_sql(migrated_database, NTH, (player, count // PLAYERS // 2))
        for page, before in (("first page", paging.END), ("in the middle", middle)):
            for kind, statement in (("list", own_replays.LISTED), ("HTML", html_pages.PLAYER)):
                found = plan(migrated_database, statement, username, *before)
                told = f"{found.milliseconds:.2f} ms, {found.buffers} buffers"
                figure(f"who {name} of {count // PLAYERS:,}, {page}, {kind}: {told}")
                assert found.buffers < 10 * shown
                if full:  # of few, to sort all of one player's may be as quick
                    assert "replays_listed_of_player" in found.text


@pytest.mark.parametrize("share", [pytest.param(0, marks=pytest.mark.short), 2, 1_000])
async def test_list_of_verified_replays_reads_no_other(migrated_database, full, figure, share):
    """The number of replays, and the share of verified ones, don't matter."""
    count = 1_000_000 if full else 20_000
    run_sql(migrated_database, FILL, ([user for user, _, _ in players(migrated_database, PLAYERS)], count // 10, count))
    run_sql(migrated_database, VERDICTS, {"share": share})
    run_sql(migrated_database, PUBLISH)
    run_sql(migrated_database, "VACUUM ANALYZE replays, public_replays, verdicts")
    found = plan(migrated_database, recent_replays.VERIFIED_PAGE, *paging.END)
    figure(f"recent verified, one of {share} of {count:,}: {found.milliseconds:.2f} ms, {found.buffers} buffers")
    assert "public_replays_verified" in found.text
    assert "Seq Scan" not in found.text
    assert found.buffers < 1_000


@pytest.mark.short
@pytest.mark.parametrize("left", [False, True])
async def test_pages_behind_the_replays_of_suspended_players_are_quick(migrated_database, full, figure, left):
    """The newest 80,000 replays are those of five suspended accounts; a `left` account is one of a later batch."""
    count, hidden = (400_000, 80_000) if full else (20_000, 4_000)
    users = [user for user, _, _ in players(migrated_database, PLAYERS)]
    run_sql(migrated_database, FILL, (users[5:10] * 10, 0, count - hidden))
    run_sql(migrated_database, "UPDATE replays SET received_at = received_at - interval '30 days'")
    run_sql(migrated_database, FILL, (users[:5] * 10, 0, hidden))
    run_sql(migrated_database, VERDICTS, {"share": 2})
    run_sql(migrated_database, PUBLISH)
    suspend = "INSERT INTO suspensions SELECT id::uuid, now(), NULL, NULL, false FROM unnest(%s) AS id"
    run_sql(migrated_database, f"{WITHOUT_TRIGGERS if left else ''} {suspend}", (users[:5],))
    run_sql(migrated_database, "VACUUM ANALYZE replays, public_replays, verdicts, suspensions")
    ((*middle,),) = run_sql(migrated_database, NTH, (users[5], (count - hidden) // 10))
    for name, query in (("recent", recent_replays.PAGE), ("verified", recent_replays.VERIFIED_PAGE)):
        for place, before in (("first page", paging.END), ("in the middle", middle)):
            found = plan(migrated_database, query, *before)
            waiting = ", before their batches" if left else ""
            figure(f"{name}, {place}, behind {hidden:,} of suspended players{waiting}: {found.milliseconds:.2f} ms")
            assert "Seq Scan on replays" not in found.text
            assert left or found.milliseconds < 50


@pytest.mark.parametrize("analyzed", [pytest.param(False, marks=pytest.mark.short), True])
async def test_repeated_upload_is_found_by_index(migrated_database, full, figure, analyzed):
    """The player has many replays, each of a game. The index works before any ANALYZE."""
    count = 1_000_000 if full else 20_000
    (user, *_), *_ = players(migrated_database, PLAYERS)
    run_sql(migrated_database, FILL, ([user] * PLAYERS, 0, count))
    run_sql(migrated_database, OF_GAMES)
    if analyzed:
        run_sql(migrated_database, "VACUUM ANALYZE replays")
    ((digest,),) = run_sql(migrated_database, "SELECT game_digest FROM replays LIMIT 1")
    for name, wanted in (("a repeated upload", bytes(digest)), ("a new one", b"x" * 32), ("without a game", None)):
        found = plan(migrated_database, replays.ROOM, user, wanted)
        figure(f"{name}, {count:,} replays: {found.milliseconds:.2f} ms, {found.buffers} buffers")
        assert "replays_of_game" in found.text
        assert found.buffers < 100
