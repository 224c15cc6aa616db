"""`solisync sessions`: lists sessions without their tokens, and revokes them."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.logger import capturedLogs, formatEvent

from solisync.commands import sessions as command
from solisync.commands.main import main
from solisync.errors import Unavailable
from solisync.process.logs import AUDIT
from solisync.rules.sessions import RefreshRecord
from solisync.storage.players import sessions
from solisync.storage.rate_limits import Hit
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD
from tests.harness.postgres import connect, lock_waiters

LIVE = timedelta(days=30)


def left(server):
    return server.sql("SELECT count(*) FROM refresh_tokens")[0][0]


async def test_live_sessions_of_a_player_are_listed(administrate, server):
    """A line has the times of a session, and nothing from which a token could be made."""
    ann = await server.player("ann")
    await ann.login("ann", PASSWORD)
    await server.player("bob")
    server.sql("INSERT INTO refresh_tokens SELECT gen_random_uuid(), id, now() - interval '1 s' FROM users")
    text = await administrate("sessions", "list", "ann", "--json")
    assert len(text.records) == 2
    for record in text.records:
        begun, used, ends = (datetime.fromisoformat(record[name]) for name in ("begun_at", "used_at", "expires_at"))
        assert begun == used
        assert abs(ends - used - LIVE) < timedelta(seconds=2)
        assert abs(datetime.now(UTC) - begun) < timedelta(minutes=5)
    for (jti,) in server.sql("SELECT jti::text FROM refresh_tokens"):
        assert jti not in text
    assert (await administrate("sessions", "list", "ann")).lines[0].split()[:2] == ["ID", "BEGUN"]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5])
async def test_sessions_of_all_players_are_revoked(administrate, server, monkeypatch, count):
    """The command works in batches and counts every session."""
    monkeypatch.setattr(command, "BATCH", 2)
    server.sql("INSERT INTO users VALUES (%s, 'ann', 'x', now())", (str(uuid4()),))
    server.sql(
        "INSERT INTO refresh_tokens SELECT gen_random_uuid(), id, now() + interval '1 d'"
        " FROM users, generate_series(1, %s)",
        (count,),
    )
    done = await administrate("sessions", "revoke", "--everyone", "--yes", "--json")
    assert done.json == {"revoked": count}
    assert left(server) == 0


@pytest.mark.parametrize("words", [("sessions", "revoke", "--everyone", "--yes"), ("replays", "check")])
async def test_revoking_all_sessions_is_in_the_audit_trail(administrate, server, words):
    """The line has the operator and the reason, because the record of acts is about single players."""
    await server.player("ann")
    with capturedLogs() as logged:
        await administrate(*words, "--reason", "takeover", "--note", "a leaked secret")
    (said,) = [formatEvent(event) for event in logged if event.get("log_namespace") == AUDIT]
    assert "shell:" in said
    assert said.endswith(", takeover: a leaked secret")
    assert server.sql("SELECT count(*) FROM admin_acts") == [(0,)]


@pytest.mark.parametrize("whom", ["ann", "--everyone"])
async def test_uncommitted_refresh_does_not_survive_revoking(administrate, server, reactor, whom):
    """Revoking waits for the refresh, and removes the token that it stored."""
    await server.player("ann")
    ((user_id, jti),) = server.sql("SELECT user_id::text, jti::text FROM refresh_tokens")
    with closing(connect(server.dsn)) as refreshing, refreshing.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(sessions.ROTATE.preparation)
        now = datetime.now(UTC)
        values = (user_id, jti, now, str(uuid4()), now + LIVE, 1, None, "a", 10, 60, None)
        cursor.execute(sessions.ROTATE.execution, values)
        assert cursor.fetchall() == [(None, 1, "ann", False)]
        revoking = Deferred.fromCoroutine(administrate("sessions", "revoke", whom, "--yes"))
        await until(reactor, lambda: lock_waiters(server.dsn))
        assert not revoking.called
        cursor.execute("COMMIT")
    assert "ended 1 session" in await revoking
    assert left(server) == 0


async def test_no_chain_of_refreshes_outlives_revoking_everyone(administrate, server, reactor, open_database):
    """Players who refresh as fast as possible, through eight connections, are all logged out in the end."""
    players = [str(uuid4()) for _ in range(16)]
    tokens = {player: str(uuid4()) for player in players}
    now = datetime.now(UTC)
    for number, player in enumerate(players):
        server.sql("INSERT INTO users VALUES (%s, %s, 'x', now())", (player, f"player_{number}"))
        server.sql("INSERT INTO refresh_tokens VALUES (%s, %s, %s)", (tokens[player], player, now + LIVE))
    database = open_database(size=8)
    turns = 0

    async def chain(player):
        nonlocal turns
        while True:
            jti = str(uuid4())
            spent, tokens[player] = tokens[player], jti
            record = RefreshRecord(jti, now + LIVE, access_expiry=turns, user_agent=None)
            hit = Hit(jti, 10, 60)
            try:
                outcome = await database.run(sessions.rotate, player, record, spent=spent, now=now, hit=hit)
            except Unavailable:  # this player's access tokens of the next minute have all seconds for `exp`
                tokens[player] = spent
                await deferLater(reactor, 0.01)
                continue
            if outcome == (None, None):
                return
            turns += 1

    chains = [Deferred.fromCoroutine(chain(player)) for player in players]
    while turns < 100:
        await deferLater(reactor, 0.01)
    await administrate("sessions", "revoke", "--everyone", "--yes")
    await gatherResults(chains)
    assert left(server) == 0


@pytest.mark.parametrize("words", [[], ["ann", "--everyone"]])
def test_sessions_need_either_a_player_or_all(words):
    """The command refuses neither and both as usage errors."""
    with pytest.raises(SystemExit, match="2"):
        main(["sessions", "revoke", "--yes", *words])


async def test_streams_of_a_revoked_session_end(administrate, server, listen):
    """The command notifies the service, which looks up the sessions that have ended."""
    ann, bob = await server.player(), await server.player("bob")
    streams = [await listen(server, client) for client in (ann, bob)]
    await administrate("sessions", "revoke", "ann")
    assert await streams[0].ended() == "session_ended"
    await administrate("sessions", "revoke", "--everyone", "--yes")
    assert await streams[1].ended() == "session_ended"
