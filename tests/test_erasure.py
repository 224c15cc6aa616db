"""Deleting an account leaves nothing of the player in any table, whichever tables there are.

Source: docs/protocol.md "Goodbye".
"""

from datetime import UTC, datetime
from uuid import UUID, uuid4

from msgspec.structs import replace
from psycopg2 import sql

from solisync.commands.smoke import PIXEL
from solisync.rules.analytics import Batch, Event
from tests.harness.postgres import connect

COLUMNS = """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name <> 'schema_migrations' ORDER BY 1, ordinal_position
"""
FOUND = sql.SQL("SELECT count(*) FROM {} WHERE strpos(lower({}::text), lower(%s)) > 0")


async def play(client, name):
    """Leave something in every table."""
    await client.register(name, "correct horse")
    player = (await client.me()).id
    pulled = (await client.pull()).merged
    await client.push(replace(pulled, stats=replace(pulled.stats, games_won=1, best_single_score=5)))
    await client.opt_in(name)
    await client.upload_avatar(PIXEL, "image/png")
    head = (
        '{"mode": "Classic", "draw_mode": "DrawOne", "final_score": 7, "time_seconds": 9, "recorded_at": "2026-11-20"'
    )
    await client.upload_replay(f'{head}, "player": "{name}", "id": "{player}"}}'.encode())
    for spelling in (player, player.upper(), UUID(player).hex, name):
        event = Event(id=str(uuid4()), event_type="won", client_time=datetime.now(UTC))
        await client.report(Batch(session_id="s", user_id=spelling, events=[event]))
    return player


def search(dsn, needles):
    """Every column in which one of the needles stands anywhere."""
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


async def test_nothing_in_the_database_names_a_deleted_player(server):
    """No column of any table holds the id or the username any more; another player keeps everything."""
    client, other = server.client(), server.client()
    player, neighbour = await play(client, "zz_erased_zz"), await play(other, "zz_kept_zz")
    needles = (player, UUID(player).hex, "zz_erased_zz")
    tables = {table for table, _ in server.sql(COLUMNS)}
    empty = {table for table in tables if not server.sql(f'SELECT 1 FROM "{table}" LIMIT 1')}
    assert not empty, f"play() leaves nothing in {empty}"
    kept = search(server.dsn, (neighbour, "zz_kept_zz"))
    assert search(server.dsn, needles) == kept
    assert kept >= {("users", "username"), ("replays", "body"), ("sync_states", "payload"), ("analytics_names", "name")}
    await client.delete_account()
    assert search(server.dsn, needles) == set()
    assert search(server.dsn, (neighbour, "zz_kept_zz")) == kept
    assert server.sql("SELECT count(*) FROM analytics_events WHERE event_type = 'won'") == [(8,)]


async def test_deleting_twice_is_no_error(server):
    """The second deletion finds nobody, and takes nothing from whoever has the name by then."""
    client, heir = server.client(), server.client()
    await play(client, "zz_erased_zz")
    access = client.tokens.access_token
    await client.delete_account()
    await play(heir, "zz_erased_zz")
    before = search(server.dsn, ("zz_erased_zz",))
    answer = await server.ask("DELETE", "/api/account", bearer=access)
    assert (answer.status, answer.json) == (200, {"ok": True})
    assert search(server.dsn, ("zz_erased_zz",)) == before
