"""Sessions over HTTP: login and refresh (docs/protocol.md "Sessions")."""

import statistics
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import bcrypt
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from solisync.storage.sessions import ROTATE
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD
from tests.harness.plans import plan
from tests.harness.postgres import connect, lock_waiters, truncate
from tests.harness.service import refused, start
from tests.harness.tokens import refresh_token


async def test_login_begins_another_session(server):
    """Each login stores a refresh record of its own; the earlier sessions stay."""
    client = await server.player("ann")
    other = server.client()
    await other.login(" ann\t", PASSWORD)
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(2,)]
    assert await client.refresh()
    assert await other.refresh()


@pytest.mark.parametrize(
    ("username", "password"),
    [
        ("ann", PASSWORD + "x"),
        ("ann", ""),
        ("ann", PASSWORD.upper()),
        ("ann", " " + PASSWORD),
        ("ann", "x" * 1024),
        ("ann", "x" * 1025),
        ("ann", "x" * 100_000),
        ("Ann", PASSWORD),
        ("bob", PASSWORD),
        ("", PASSWORD),
        ("x" * 33, PASSWORD),
        ("x" * 100_000, PASSWORD),
        ("ann'; --", PASSWORD),
        ("ünn", PASSWORD),
    ],
)
async def test_wrong_credentials_cost_one_verification_and_say_nothing(server, monkeypatch, username, password):
    """Unknown, absurd or wrong: one bcrypt at the same cost, and the same answer."""
    await server.player("ann")
    costs = []
    verify = bcrypt.checkpw
    monkeypatch.setattr(bcrypt, "checkpw", lambda *pair: costs.append(pair[1][:7]) or verify(*pair))
    assert await refused(server.client().login(username, password)) == (401, "invalid credentials")
    assert costs == [b"$2b$04$"]


async def test_a_login_that_is_run_again_after_a_deadlock_counts_once(server):
    """However often the database had to try: the metric, the session and the answer are those of one login."""
    await server.player("ann")
    counted = server.service.parts.metrics.registry.get_sample_value
    before = {outcome: counted("solisync_logins_total", {"outcome": outcome}) for outcome in ("ok", "wrong")}
    server.sql(
        """
        CREATE SEQUENCE attempts;
        CREATE FUNCTION deadlock_twice() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('attempts') < 3 THEN RAISE 'deadlock' USING ERRCODE = '40P01'; END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER deadlock_twice AFTER INSERT ON refresh_tokens EXECUTE FUNCTION deadlock_twice();
        """
    )
    try:
        await server.client().login("ann", PASSWORD)
    finally:
        server.sql("DROP FUNCTION deadlock_twice CASCADE; DROP SEQUENCE attempts")
    assert counted("solisync_logins_total", {"outcome": "ok"}) == before["ok"] + 1
    assert counted("solisync_logins_total", {"outcome": "wrong"}) == before["wrong"]
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(2,)]


async def test_a_name_that_no_column_can_hold_is_a_bad_request(server):
    """U+0000 in a username is a 400, never a 500."""
    assert await refused(server.client().login("a\0b", PASSWORD)) == (400, "username must not contain U+0000")


async def test_a_password_that_was_replaced_meanwhile_does_not_log_in(server, monkeypatch):
    """Login succeeds only while the stored hash is still the one it verified."""
    await server.player("ann")
    verify = bcrypt.checkpw

    def verify_while_it_changes(*pair):
        server.sql("UPDATE users SET password_hash = %s", (bcrypt.hashpw(b"new password", bcrypt.gensalt(4)).decode(),))
        return verify(*pair)

    monkeypatch.setattr(bcrypt, "checkpw", verify_while_it_changes)
    assert await refused(server.client().login("ann", PASSWORD)) == (401, "invalid credentials")
    monkeypatch.setattr(bcrypt, "checkpw", verify)
    assert await server.client().login("ann", "new password")


async def test_refresh_rotates(server):
    """A refresh token works once; what it was exchanged for works too, and the record count stays the same."""
    client = await server.player("ann")
    first = client.tokens
    second = await client.refresh()
    assert first != second
    client.tokens = first
    assert await refused(client.refresh()) == (401, "unauthorized")
    client.tokens = second
    assert await client.refresh()
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(1,)]


async def test_a_spent_token_does_not_end_the_other_sessions(server):
    """Replaying a spent token is refused and changes nothing."""
    client = await server.player("ann")
    spent = client.tokens
    alive = await client.refresh()
    client.tokens = spent
    await refused(client.refresh())
    client.tokens = alive
    assert await client.refresh()


async def test_refresh_takes_nothing_but_a_live_refresh_token(server):
    """An access token, a foreign signature, an expired token, an unknown jti or another spelling is a 401."""
    client = await server.player("ann")
    me = await client.me()
    now = datetime.now(UTC)
    ((jti,),) = server.sql("SELECT jti FROM refresh_tokens")
    for token in (
        client.tokens.access_token,
        f"{client.tokens.refresh_token}=",
        f"{client.tokens.refresh_token}\n",
        refresh_token(me.id, jti, now, b"x" * 32),
        refresh_token(me.id, jti, now - timedelta(days=31)),
        refresh_token(me.id, "11111111-1111-4111-8111-111111111111", now),
        refresh_token("11111111-1111-4111-8111-111111111111", jti, now),
        "",
        "x",
    ):
        answer = await server.ask("POST", "/api/auth/refresh", body={"refresh_token": token})
        assert (answer.status, answer.json) == (401, {"error": "unauthorized"})
    assert await client.refresh()


async def test_a_refresh_prunes_what_has_expired(server):
    """Expired records of any player leave with the next successful refresh; a refused one prunes nothing."""
    client = await server.player("ann")
    await server.player("bob")
    server.sql(
        "INSERT INTO refresh_tokens SELECT gen_random_uuid(), id, now() - interval '1 second' FROM users"
        " CROSS JOIN generate_series(1, 600)"
    )
    spent = client.tokens
    await client.refresh()
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(2 + 200,)]
    fresh, client.tokens = client.tokens, spent
    await refused(client.refresh())
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(2 + 200,)]
    client.tokens = fresh
    await client.refresh()
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(2,)]


async def test_a_refresh_reads_no_session_but_its_own(server):
    """Where nothing has expired, a refresh scans no table, also if that has few pages."""
    await server.player("ann")
    ((player, jti),) = server.sql("SELECT user_id, jti FROM refresh_tokens")
    now = datetime.now(UTC)
    ends = now + timedelta(days=30)
    server.sql(
        "INSERT INTO refresh_tokens SELECT gen_random_uuid(), %s, %s FROM generate_series(1, 1000)", (player, ends)
    )
    server.sql("ANALYZE refresh_tokens")
    new = (jti, ends, int(ends.timestamp()), None)  # of the same id, so that it can be spent again
    ran = plan(server.dsn, ROTATE, player, jti, now, *new, "auth:192.0.2.1", 10, 60, None)
    assert [line for line in ran.text.splitlines() if "Seq Scan" in line and "never executed" not in line] == []


async def test_a_login_shows_the_database_no_hash(reactor, server):
    """No statement of a login has the password's hash in its text, which the server may log and shows to its users."""
    client = await server.player("ann")
    ((password_hash,),) = server.sql("SELECT password_hash FROM users")
    with closing(connect(server.dsn)) as blocking:
        blocking.cursor().execute("BEGIN; SELECT FROM users FOR UPDATE")
        login = Deferred.fromCoroutine(client.login("ann", PASSWORD))
        (waiter,) = await until(reactor, lambda: lock_waiters(server.dsn))
    assert "begin_session" in waiter.query
    assert password_hash not in waiter.query
    await login


class Wall(Clock):
    """A clock that tells the time of day."""

    def now(self):
        return datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=self.seconds())


async def test_sessions_end_in_their_time(reactor, shared_dsn):
    """An access token lasts 24 hours and a refresh token 30 days, to the second."""
    truncate(shared_dsn)
    wall = Wall()
    running = await start(reactor, shared_dsn, now=wall.now)
    try:
        client = await running.player("ann")
        token = client.tokens
        wall.advance(86_399)
        assert (await running.ask("GET", "/api/me", bearer=token.access_token)).status == 200
        wall.advance(1)
        assert (await running.ask("GET", "/api/me", bearer=token.access_token)).status == 401
        assert (await client.me()).username == "ann"  # the client refreshes by itself
        wall.advance(30 * 86_400)
        assert await refused(client.refresh()) == (401, "unauthorized")
    finally:
        await running.service.stopService()


async def test_a_login_takes_as_long_whoever_it_is(reactor, shared_dsn):
    """Where a hash takes a while, a login for nobody takes as long as one for somebody (many times as long as none)."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, bcrypt_cost=9)
    names = {"known": "ann", "unknown": "nobody", "absurd": "", "over-long": "x" * 500}
    try:
        await running.player("ann")
        times = {kind: [] for kind in names}
        for _ in range(5):  # in turns, so that what else the machine does is shared out
            for kind, name in names.items():
                began = time.perf_counter()
                assert (await refused(running.client().login(name, PASSWORD + "!")))[0] == 401
                times[kind].append(time.perf_counter() - began)
        medians = {kind: statistics.median(each) for kind, each in times.items()}
        print({kind: round(seconds * 1000, 1) for kind, seconds in medians.items()})
        assert max(medians.values()) < 10 * min(medians.values())
    finally:
        await running.service.stopService()
