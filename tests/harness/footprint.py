"""A player with data in every table, and a search of all columns.

The ids in the table `imported` are excluded, because they are kept forever (docs/moving-in.md "Again and again").
"""

from datetime import UTC, datetime
from uuid import UUID, uuid4

from msgspec import convert
from msgspec.structs import replace
from psycopg2 import sql

from solisync.client import Client
from solisync.commands.smoke import PIXEL
from solisync.rules.analytics import AnalyticsEvent, Batch
from solisync.rules.games import SentGame
from tests.harness.boards import check
from tests.harness.games import game
from tests.harness.postgres import connect, run_sql

COLUMNS = """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = 'public'
      AND table_name NOT IN (
          'schema_migrations', 'replay_sweep', 'restriction_number', 'imported', 'retention_clock', 'retention',
          'housekeeping'
      )
    ORDER BY 1, ordinal_position
"""

FOUND = sql.SQL("SELECT count(*) FROM {} WHERE strpos(lower({}::text), lower(%s)) > 0")

HAPPENED = """
    INSERT INTO account_history (happened_at, user_id, event, reason, client, times)
    VALUES (now(), %s, 'login failed', 'a canary of a reason', '203.0.113.45', 7)
"""


ADMIN = """
    INSERT INTO admins (name) VALUES (%(name)s);
    INSERT INTO admin_codes VALUES (%(name)s, %(name)s::bytea, now() + interval '15 minutes');
    INSERT INTO admin_sessions (admin, digest, begun_at, used_at, client)
        VALUES (%(name)s, %(name)s::bytea, now(), now(), 'unix')
"""

SEEN = "INSERT INTO review_seen (kind, item, user_id, admin) VALUES ('entries', %(item)s, %(player)s, 'root')"

RESTRICT = """
    INSERT INTO suspensions VALUES (%(player)s, now(), now() + interval '1 day', 'no more of this', true);
    INSERT INTO access_cutoffs VALUES (%(player)s, 1234567890);
    INSERT INTO profile_locks VALUES (%(player)s, now());
    UPDATE replays SET held = true WHERE user_id = %(player)s;
    WITH act AS (
        INSERT INTO admin_acts (actor_kind, actor, act, target, reason, client, request_id)
        VALUES ('admin', 'an operator', 'unlist', 'replay', 'cheating', '192.0.2.7', 'a request') RETURNING id
    )
    INSERT INTO admin_notes (act_id, user_id, replay_id, note, before, after)
    SELECT act.id, user_id, replays.id, 'seen by hand', 'what was before', 'what is now' FROM act, replays
    WHERE user_id = %(player)s
"""


def restrict(dsn, player):
    """Add rows to all tables of acts and restrictions; the service then refuses this player."""
    run_sql(dsn, RESTRICT, {"player": player})


async def play(dsn, client, name):
    """Add rows to all tables but those of `restrict`, in all columns that new nodes fill; return the player's id."""
    await client.register(name, "correct horse")
    player = (await client.me()).id
    pulled = (await client.pull()).merged
    stats = replace(pulled.stats, games_won=1, best_single_score=54_321, fastest_win_seconds=45_678)
    await client.push(replace(pulled, stats=stats))
    await client.count_games(convert(game(score=7_531, seconds=8_642), SentGame))
    run_sql(dsn, "UPDATE game_memory SET forgotten_until = '2020-02-20' WHERE user_id = %s", (player,))
    await client.opt_in(name)
    await client.upload_avatar(PIXEL, "image/png")
    head = '{"mode": "Classic", "draw_mode": "DrawOne", "final_score": 7.50, "time_seconds": 98765, "seed": 123456789'
    body = f'{head}, "recorded_at": "2026-11-20", "player": "{name}", "id": "{player}", "game_id": "{uuid4()}"}}'
    replay_id = await client.upload_replay(body.encode())
    await client.set_listed(replay_id, False)
    check(dsn, replay_id, 7)
    await client.make_recovery_codes("correct horse")
    guest = Client(client._url, headers=client._headers)
    await client.join((await guest.guest()).refresh_token)
    run_sql(dsn, "UPDATE users SET guest_name = %s WHERE id = %s", (f"guest of {name}", player))
    run_sql(dsn, "INSERT INTO reset_tokens VALUES (%s, %s, now() + interval '1 hour')", (player, player.encode()))
    run_sql(dsn, HAPPENED, (player,))
    run_sql(dsn, SEEN, {"player": player, "item": f"{player}.{stats.best_single_score}"})
    run_sql(dsn, ADMIN, {"name": f"admin_{uuid4()}"})
    run_sql(dsn, "INSERT INTO recent_searches VALUES (%s, now())", (player,))
    for spelling in (player, player.upper(), UUID(player).hex, name):
        event = AnalyticsEvent(id=str(uuid4()), event_type="won", client_time=datetime.now(UTC))
        await client.report(Batch(session_id="s", user_id=spelling, events=[event]))
    return player


def search(dsn, needles):
    """All columns that contain one of the needles anywhere."""
    connection = connect(dsn)
    try:
        with connection.cursor() as cursor:
            cursor.execute(COLUMNS)
            found = set()
            for table, column in cursor.fetchall():
                for needle in needles:
                    cursor.execute(FOUND.format(sql.Identifier(table), sql.Identifier(column)), (needle,))
                    if cursor.fetchone()[0]:
                        found.add((table, column))
            return found
    finally:
        connection.close()
