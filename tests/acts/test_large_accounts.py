"""Accounts with more replays than one statement may hide or delete: docs/moderation.md "Large accounts"."""

import pytest

from solisync.acts import large_accounts, players, profiles
from solisync.events.notices import BoardsChanged
from solisync.storage.operators.large_accounts import settle, waiting
from tests.harness.acting import operator
from tests.harness.players import players as new_players

LARGE = 17_408  # the quota, and a join beyond it
# Without triggers: the rows are as these would leave them.
FILL = """
    SET session_replication_role = replica;
    INSERT INTO leaderboard (user_id, display_name, best_score, recorded_at, visible)
    VALUES (%(player)s, 'Ann', 1, now(), true);
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, seed, recorded_at)
    SELECT gen_random_uuid(), %(player)s, now() - make_interval(secs => n), '{}', 2, 'Classic', 'DrawOne', '1', '1',
        n, '2026-01-01'
    FROM generate_series(1, %(count)s) AS n;
    INSERT INTO verdicts (replay_id, status, ruleset, undos, score, moves, checked_at, engine)
    SELECT id, 'verified', '2026-05-19', 0, seed::int, 100, now(), 1 FROM replays WHERE seed::int <= 900;
    INSERT INTO board_evidence (board, user_id, deficit, received_at, replay_id, ranked, classic)
    SELECT 'own', user_id, -score, received_at, id, false, draw_mode FROM replays JOIN verdicts ON replay_id = id
    UNION ALL
    SELECT 'deal/' || seed || '/DrawOne', user_id, -score, received_at, id, true, NULL
    FROM replays JOIN verdicts ON replay_id = id
    UNION ALL
    SELECT board, user_id, -score, received_at, id, true, NULL
    FROM replays JOIN verdicts ON replay_id = id CROSS JOIN unnest(ARRAY['classic', 'classic/DrawOne']) AS board
    WHERE score = 900;
    INSERT INTO public_replays SELECT received_at, id, is_verified(id) FROM replays;
    INSERT INTO replay_usage (user_id, used_bytes, replays) VALUES (%(player)s, 4096 * %(count)s, %(count)s)
"""
PUBLIC = "SELECT count(*), count(*) FILTER (WHERE verified) FROM public_replays"
RANKED = "SELECT board, deficit, replay_id FROM board_evidence WHERE ranked ORDER BY 1"


def fill(server, count=LARGE + 2):
    """Make a player with verified and other replays, all of them listed and ranked; return its id and access token."""
    [(player, _, token)] = new_players(server.dsn, 1)
    server.sql(FILL, {"player": player, "count": count})
    return player, token


async def settle_all(acting):
    """Do what housekeeping does."""
    for account in await acting.database.run(waiting):
        await large_accounts.settle(acting.database, acting.publish, account)


async def test_account_of_the_largest_usual_size_is_hidden_at_once(server, reactor):
    """Its lists and boards are right when the act is committed."""
    player, _ = fill(server, LARGE)
    async with operator(reactor, server.dsn) as acting:
        assert (await acting.perform(players.suspend, player)).settled
        assert (server.sql(PUBLIC), server.sql(RANKED)) == ([(0, 0)], [])
        assert await acting.database.run(waiting) == []


async def test_suspended_large_account_is_hidden_before_its_batches(server, reactor):
    """The lists leave it out although the table still has its replays; the batches remove them."""
    player, _ = fill(server)
    ranked = server.sql(RANKED)
    assert len(ranked) == 902
    async with operator(reactor, server.dsn) as acting:
        assert not (await acting.perform(players.suspend, player)).settled
        server.forget_lists()
        assert (await server.ask("GET", "/api/replays/recent")).json == []
        assert server.sql(PUBLIC) == [(LARGE + 2, 900)]
        await settle_all(acting)
        assert (server.sql(PUBLIC), server.sql(RANKED)) == ([(0, 0)], [])
        await acting.perform(players.unsuspend, player)
        await settle_all(acting)
    assert (server.sql(PUBLIC), server.sql(RANKED)) == ([(LARGE + 2, 900)], ranked)
    assert server.sql("SELECT count(*) FROM large_accounts") == [(0,)]


@pytest.mark.parametrize("parts", [1, 8, 9, 10])
async def test_change_of_mind_between_two_batches_begins_again(server, reactor, parts):
    """The suspension ends while its batches hide replays or boards; everything is visible again in the end."""
    player, _ = fill(server)
    before = server.sql(PUBLIC), server.sql(RANKED)
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.suspend, player)
        for _ in range(parts):  # nine for the replays, then one for the boards
            assert await acting.database.run(settle, player, large_accounts.BATCH)
        await acting.perform(players.unsuspend, player)
        await settle_all(acting)
    assert (server.sql(PUBLIC), server.sql(RANKED)) == before


async def test_hidden_entry_of_a_large_account_leaves_the_boards(server, reactor):
    """Its replays stay on the list."""
    player, _ = fill(server)
    before = server.sql(PUBLIC), server.sql(RANKED)
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(profiles.hide, player)
        await settle_all(acting)
        assert (server.sql(PUBLIC), server.sql(RANKED)) == (before[0], [])
        await acting.perform(profiles.show, player)
        await settle_all(acting)
    assert (server.sql(PUBLIC), server.sql(RANKED)) == before


async def test_player_deletes_a_large_account(server):
    """The answer comes when everything is deleted."""
    _, token = fill(server)
    assert (await server.ask("DELETE", "/api/account", bearer=token)).status == 200
    for table in ("users", "replays", "board_evidence", "public_replays", "large_accounts", "verdicts"):
        assert server.sql(f"SELECT count(*) FROM {table}") == [(0,)], table


@pytest.mark.parametrize("again", ["housekeeping", "the player"])
async def test_interrupted_deletion_of_a_large_account_goes_on(server, reactor, again):
    """The sessions have ended; housekeeping or the next request deletes the rest."""
    player, token = fill(server, LARGE + 5_000)
    async with operator(reactor, server.dsn) as acting:
        assert await acting.database.transact(large_accounts.erase, player)
        assert await acting.database.run(settle, player, large_accounts.BATCH)
        assert server.sql("SELECT count(*) FROM refresh_tokens") == [(0,)]
        assert server.sql("SELECT count(*) FROM replays") == [(LARGE + 3_000,)]
        if again == "housekeeping":
            await settle_all(acting)
        else:
            assert (await server.ask("DELETE", "/api/account", bearer=token)).status == 200
    assert server.sql("SELECT count(*) FROM users") == [(0,)]
    assert server.sql("SELECT count(*) FROM replays") == [(0,)]


@pytest.mark.parametrize("act", [players.suspend, players.delete], ids=lambda act: act.name)
async def test_streams_are_notified_when_the_batches_are_done(server, reactor, act):
    """The boards may have changed with each batch."""
    player, _ = fill(server)
    told = []
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(act, player)
        for account in await acting.database.run(waiting):
            await large_accounts.settle(acting.database, lambda *notices: told.extend(notices), account)
    assert told == [BoardsChanged()]


async def test_batches_end_with_the_time_of_the_round(server, reactor):
    """The account waits for the next round, and streams are notified then."""
    player, _ = fill(server, LARGE + 5_000)
    told = []
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.delete, player)
        (account,) = await acting.database.run(waiting)
        given = acting.database, lambda *notices: told.extend(notices), account, lambda: False
        await large_accounts.settle(*given)
        assert (await acting.database.run(waiting), told) == ([account], [])
    assert server.sql("SELECT count(*) FROM replays") == [(LARGE + 5_000 - large_accounts.BATCH,)]


async def test_command_ends_when_the_batches_are_done(administrate, server):
    """An operator who reads that a player is suspended finds no list with the player."""
    fill(server)
    await administrate("users", "suspend", "player0", "--yes")
    assert (server.sql(PUBLIC), server.sql(RANKED)) == ([(0, 0)], [])
    await administrate("users", "delete", "player0", "--yes")
    assert server.sql("SELECT count(*) FROM replays") == [(0,)]
