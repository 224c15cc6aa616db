"""Deleting an account leaves nothing of the player in any table, whichever tables there are.

Source: docs/protocol.md "Goodbye".
"""

from uuid import UUID

from psycopg2 import sql

from tests.harness.footprint import COLUMNS, play
from tests.harness.postgres import connect

FOUND = sql.SQL("SELECT count(*) FROM {} WHERE strpos(lower({}::text), lower(%s)) > 0")


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
    """No column of any table holds the id or the username any more; another player keeps everything.

    Only rate limits do, until housekeeping deletes them, one or two minutes after the last request.
    """
    client, other = server.client(), server.client()
    player, neighbour = await play(server.dsn, client, "zz_erased_zz"), await play(server.dsn, other, "zz_kept_zz")
    needles = (player, UUID(player).hex, "zz_erased_zz")
    tables = {table for table, _ in server.sql(COLUMNS)}
    empty = {table for table in tables if not server.sql(f'SELECT 1 FROM "{table}" LIMIT 1')}
    assert not empty, f"play() leaves nothing in {empty}"
    kept = search(server.dsn, (neighbour, "zz_kept_zz"))
    assert search(server.dsn, needles) == kept
    assert kept >= {("users", "username"), ("replays", "body"), ("sync_states", "payload"), ("analytics_names", "name")}
    await client.delete_account()
    assert search(server.dsn, needles) <= {("rate_limits", "bucket")}
    assert search(server.dsn, (neighbour, "zz_kept_zz")) == kept
    assert server.sql("SELECT count(*) FROM analytics_events WHERE event_type = 'won'") == [(8,)]


async def test_deleting_twice_is_no_error(server):
    """The second deletion finds nobody, and takes nothing from whoever has the name by then."""
    client, heir = server.client(), server.client()
    await play(server.dsn, client, "zz_erased_zz")
    access = client.tokens.access_token
    await client.delete_account()
    await play(server.dsn, heir, "zz_erased_zz")
    before = search(server.dsn, ("zz_erased_zz",))
    answer = await server.ask("DELETE", "/api/account", bearer=access)
    assert (answer.status, answer.json) == (200, {"ok": True})
    assert search(server.dsn, ("zz_erased_zz",)) == before
