"""Deleting an account leaves nothing of the player in any table, including tables of later versions.

Source: docs/protocol.md "Deleting an account".
"""

from uuid import UUID

import pytest

from solisync.access.rate_limit import GAMES, LIMITS_OF_PLAYERS, buckets_of
from solisync.acts import players
from tests.harness.acting import act
from tests.harness.error_codes import table
from tests.harness.footprint import COLUMNS, play, restrict, search

NAMELESS = {  # see tests/web/test_public_replays.py and tests/test_daily_numbers.py
    "last_backup",
    "public_replays",
    "public_replays_begin",
    "daily_numbers",
    "account_deletions",
    "guest_keys",
    "large_accounts",
}


@pytest.mark.parametrize("restricted", [False, True])
async def test_no_table_names_a_deleted_player(server, reactor, restricted):
    """No column holds the id or the username any more; another player keeps everything.

    Players delete themselves, and operators delete suspended players.
    """
    client, other = server.client(), server.client()
    player, neighbour = await play(server.dsn, client, "zz_erased_zz"), await play(server.dsn, other, "zz_kept_zz")
    for each in (client, other):
        await each.export()
        wrong = {"current_password": "no", "new_password": "correct horse"}
        answer = await server.ask("PUT", "/api/me/password", body=wrong, bearer=each.tokens.access_token)
        assert answer.status == 401
    needles = (player, UUID(player).hex, "zz_erased_zz")
    restrict(server.dsn, neighbour)
    if restricted:
        restrict(server.dsn, player)
    acts = "SELECT count(*) FROM admin_acts"
    ((recorded,),) = server.sql(acts)
    tables = {table for table, _ in server.sql(COLUMNS)}
    empty = {table for table in tables if not server.sql(f'SELECT 1 FROM "{table}" LIMIT 1')}
    assert empty == NAMELESS, f"play() leaves nothing in {empty}"
    kept = search(server.dsn, (neighbour, "zz_kept_zz"))
    if restricted:
        assert search(server.dsn, needles) == kept
    counted = server.sql("SELECT bucket FROM rate_limits WHERE bucket LIKE %s ORDER BY 1", (f"%{player}",))
    assert [bucket for (bucket,) in counted] == sorted(buckets_of(player))
    documents = {("replays", "body"), ("sync_states", "payload"), ("analytics_names", "name")}
    assert kept >= {("rate_limits", "bucket"), ("users", "username"), *documents}
    if restricted:
        await act(reactor, server.dsn, players.delete, player)
    else:
        await client.delete_account()
    assert not search(server.dsn, needles)
    assert search(server.dsn, (neighbour, "zz_kept_zz")) == kept
    assert server.sql(acts) == [(recorded + restricted,)]
    assert server.sql("SELECT count(*) FROM analytics_events WHERE event_type = 'won'") == [(8,)]


def test_deletion_covers_each_limit_of_a_player():
    """A route that counts the requests of a player uses one of these buckets; that of games counts itself."""
    counting = {route.limit for route in table() if route.protected and not route.limit_by_address}
    assert counting - {None} | {GAMES} == {*LIMITS_OF_PLAYERS}


async def test_second_deletion_is_no_error(server):
    """A new player may have the username by then, and loses nothing."""
    client, heir = server.client(), server.client()
    await play(server.dsn, client, "zz_erased_zz")
    access = client.tokens.access_token
    await client.delete_account()
    await play(server.dsn, heir, "zz_erased_zz")
    before = search(server.dsn, ("zz_erased_zz",))
    answer = await server.ask("DELETE", "/api/account", bearer=access)
    assert (answer.status, answer.json) == (200, {"ok": True})
    assert search(server.dsn, ("zz_erased_zz",)) == before
