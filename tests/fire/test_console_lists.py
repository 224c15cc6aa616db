"""Each list of the console takes at most 50 ms of PostgreSQL, with a million players and a year of acts."""

import pytest

from solisync.storage import paging
from solisync.storage.operators import acts, counts
from solisync.storage.paging import FIRST_TIME
from solisync.storage.players import accounts, history, player_lists, players, sessions
from solisync.storage.replays import checks, listed_replays
from tests.harness.plans import Plan
from tests.harness.postgres import connect, run_sql

END = paging.END
START, LATE = player_lists.START, (player_lists.WITHOUT, paging.LAST_ID)
LAST = paging.LAST_NUMBER
TARGET = 50  # milliseconds
EVERYBODY = "203.0.113.7"  # an address that a tenth of all events came from

# Every tenth player is suspended, and as many are locked as a page sorts. One player has a thousand times as many
# replays, names and sign-ins as others.
FILL = """
    SET session_replication_role = replica;
    INSERT INTO users (id, username, password_hash, created_at, avatar_extension, guest)
    SELECT gen_random_uuid(), 'Player_' || n, 'none', now() - random() * interval '1 year',
        CASE n %% 10 WHEN 0 THEN 'png' END, CASE n %% 10 WHEN 1 THEN true END
    FROM generate_series(1, %(players)s) AS n;
    INSERT INTO leaderboard (user_id, display_name, recorded_at, visible, best_score)
    SELECT id, 'The ' || username, now(), true, 100 FROM users;
    INSERT INTO replays (id, user_id, received_at, body, size, mode, draw_mode, time_seconds, final_score, recorded_at)
    SELECT gen_random_uuid(), id, now() - random() * interval '1 year', '{}', 2, 'Classic', 'DrawOne', '1', '1',
        '2026-01-01' FROM users;
    INSERT INTO replays (id, user_id, received_at, body, size, mode, draw_mode, time_seconds, final_score, recorded_at)
    SELECT gen_random_uuid(), id, now() - n * interval '1 s', '{}', 2, 'Classic', 'DrawOne', '1', '1', '2026-01-01'
    FROM users, generate_series(1, 16000) AS n WHERE username = 'Player_1';
    INSERT INTO refresh_tokens (jti, user_id, expires_at, session_id, used_at)
    SELECT gen_random_uuid(), id, now() + random() * interval '30 days', gen_random_uuid(), now()
    FROM users, generate_series(1, 2) WHERE username NOT LIKE '%%0';
    INSERT INTO replay_usage (user_id, used_bytes, replays)
    SELECT user_id, sum(replay_charge(size)), count(*) FROM replays GROUP BY user_id;
    INSERT INTO verdicts (replay_id, status, reason, checked_at, engine)
    SELECT id, 'refuted', 'illegal', now(), 2 FROM replays;
    INSERT INTO account_history (happened_at, user_id, event, client, times)
    SELECT now() - (%(players)s - n) * interval '2 s', id,
        (ARRAY['login', 'login', 'register', 'opted in', 'avatar changed', 'login failed'])[1 + n %% 6],
        CASE n %% 10 WHEN 0 THEN '203.0.113.7' ELSE '192.0.2.' || n %% 250 END, 1
    FROM (SELECT id, row_number() OVER () AS n FROM users, generate_series(1, 3)) AS happened ORDER BY n;
    INSERT INTO account_history (happened_at, user_id, event, client, times)
    SELECT now(), id, 'opted in', '198.51.100.1', 1 FROM users, generate_series(1, 20000) WHERE username = 'Player_1';
    INSERT INTO suspensions SELECT id, now() - random() * interval '1 year', NULL, NULL, true FROM users
    WHERE username LIKE '%%0';
    INSERT INTO profile_locks SELECT id, now() - random() * interval '1 year' FROM users
    WHERE username LIKE '%%000' OR username LIKE '%%500';
    INSERT INTO review_seen (kind, item, user_id, admin)
    SELECT 'names', id::text, user_id, 'ann' FROM account_history WHERE event = 'opted in' ORDER BY id DESC LIMIT 10000;
    INSERT INTO review_seen (kind, item, user_id, admin)
    SELECT 'players', id::text, user_id, 'ann' FROM account_history
    WHERE event = 'register' ORDER BY id DESC LIMIT 10000;
    INSERT INTO review_seen (kind, item, user_id, admin)
    SELECT 'replays', id::text, user_id, 'ann' FROM replays ORDER BY received_at DESC LIMIT 10000;
    INSERT INTO admin_acts (actor_kind, actor, act, target)
    SELECT 'admin', 'ann', 'suspend', 'player' FROM generate_series(1, %(acts)s);
    INSERT INTO admin_notes (act_id, user_id, note)
    SELECT act, id, 'seen by hand' FROM (SELECT id, row_number() OVER () AS act FROM users LIMIT %(acts)s) AS noted
"""
TABLES = """
    users, leaderboard, replays, verdicts, account_history, suspensions, profile_locks, admin_acts, admin_notes,
    refresh_tokens, replay_usage, review_seen
"""

LISTS = [
    ("players by the beginning of a name", players.by_beginning.statement, ("pLAYER_77", "", 51)),
    ("the page after one in the middle", players.by_beginning.statement, ("p", "Player_5", 51)),
    ("a part, in a page of names", players.USERNAMES, ("Player_5", "nobody", players.PAGE, 51)),
    ("a part, in a page of display names", players.DISPLAY_NAMES, ("{player}", "nobody", players.PAGE, 51)),
    *((f"players, {order}", query, (*START, 51)) for order, query in player_lists._PAGED.items()),
    ("players without a session", player_lists._UNUSED, (*LATE, 51)),
    ("where these end", player_lists.end_of_ids.statement, (paging.LAST_ID,)),
    *((f"players, {order}", query, (*START, 100)) for order, query in player_lists._FIRST.items()),
    *(
        (f"{state}, {order}", query, (*START, 51, state))
        for order, query in player_lists._SORTED.items()
        for state in player_lists._STATES
    ),
    ("players of a busy address", history.OF_CLIENT, (EVERYBODY, *END, 51)),
    ("the history of a player", history.of_player.statement, ("{player}", LAST, 51)),
    ("new names, behind one who changes without end", history.NAMED, (LAST, 51, True)),
    ("new names, all seen", history.NAMED, (LAST, 51, False)),
    ("where these end", history.end_of_changes.statement, ("opted in", LAST)),
    ("new avatars", history.PICTURED, (LAST, 51, False)),
    ("new players, all seen", history.REGISTERED, (LAST, 51, False)),
    ("replays", listed_replays.NEWEST, (None, False, 51, *END)),
    ("replays, all seen", listed_replays.UNSEEN, (None, False, 51, *END)),
    ("replays with a verdict that none has", listed_replays.NEWEST, ("undecided", False, 51, *END)),
    ("where these end", listed_replays.END_OF_NEWEST, (None, None, None, *END)),
    ("replays of a player, held", listed_replays.OF_PLAYER, (None, True, 51, *END, "{player}")),
    ("where these end", listed_replays.END_OF_PLAYER, (None, None, None, *END, "{player}")),
    ("bests that nothing proves", listed_replays.unproved.statement, (False,)),
    ("acts", acts.LIST, (LAST, 51, None, None, None, FIRST_TIME, END.time)),
    ("acts of an admin without acts", acts.LIST, (LAST, 51, None, "admin:bob", None, FIRST_TIME, END.time)),
    ("acts of a time without acts", acts.LIST, (LAST, 51, None, None, None, END.time, END.time)),
    ("acts on a player", acts.LIST_OF_PLAYER, (LAST, 51, None, None, None, FIRST_TIME, END.time, "{player}")),
    ("an unknown admin", acts.knows_admin.statement, ("bob",)),
    ("the facts of a player with many replays", accounts.facts.statement, ("{player}",)),
    ("sessions of a player", sessions.LIST, ("{player}", None)),
    ("counts for the overview", counts.estimates.statement, ()),
    ("queues for the overview", checks.waiting.statement, ()),
]


def explained(cursor, statement, parameters):
    """Return how the console runs the statement, with its parameters in its text; the second run counts."""
    values = {f"0.{number}": value for number, value in enumerate(parameters, 1)}
    for _ in range(2):
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {statement.inline(0)}", values)
        lines = cursor.fetchall()
    return Plan(lines)


@pytest.mark.short
def test_each_list_of_the_console_takes_50_ms(migrated_database, full, figure):
    """One player or many may have filled it."""
    players, done = (1_000_000, 100_000) if full else (500, 100)
    run_sql(migrated_database, FILL.replace("16000", "16000" if full else "100"), {"players": players, "acts": done})
    run_sql(migrated_database, f"VACUUM ANALYZE {TABLES}")
    ((player,),) = run_sql(migrated_database, "SELECT id::text FROM users WHERE username = 'Player_1'")
    connection = connect(migrated_database)
    try:
        with connection.cursor() as cursor:
            for name, statement, parameters in LISTS:
                given = [player if value == "{player}" else value for value in parameters]
                plan = explained(cursor, statement, given)
                figure(f"{name}: {plan.milliseconds:.1f} ms, {plan.buffers} buffers ({TARGET} ms)")
                assert plan.milliseconds < 10 * TARGET, plan.text
    finally:
        connection.close()
