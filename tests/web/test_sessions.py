"""Sessions over HTTP: login and refresh (docs/protocol.md "Sessions")."""

import statistics
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import bcrypt
import jwt
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from solisync.storage.players.sessions import ROTATE
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD, SECRET
from tests.harness.plans import plan
from tests.harness.postgres import connect, lock_waiters, truncate
from tests.harness.service import refused, start
from tests.harness.tokens import refresh_token


async def test_login_begins_another_session(server):
    """Each login stores its own refresh record; earlier sessions stay."""
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
async def test_wrong_credentials_cost_one_verification_and_reveal_nothing(server, monkeypatch, username, password):
    """Unknown, absurd or wrong credentials cost one bcrypt and get the same reply."""
    await server.player("ann")
    costs = []
    verify = bcrypt.checkpw
    monkeypatch.setattr(bcrypt, "checkpw", lambda *pair: costs.append(pair[1][:7]) or verify(*pair))
    assert await refused(server.client().login(username, password)) == (401, "invalid credentials")
    assert costs == [b"$2b$04$"]


async def test_login_repeated_after_a_deadlock_counts_once(server):
    """The metric, the session and the reply count one login, however often the database tried."""
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


async def test_username_with_a_null_character_is_a_400(server):
    """No column can store U+0000; the service must not return 500."""
    assert await refused(server.client().login("a\0b", PASSWORD)) == (400, "username must not contain U+0000")


async def test_refresh_token_works_once(server):
    """The repetition ends nothing: the successor works, and the number of records stays the same."""
    client = await server.player("ann")
    first = client.tokens
    second = await client.refresh()
    assert first != second
    client.tokens = first
    assert await refused(client.refresh()) == (401, "unauthorized")
    client.tokens = second
    assert await client.refresh()
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(1,)]


async def test_refresh_needs_a_live_refresh_token(server):
    """Access tokens, foreign signatures, expired tokens, unknown ids and other spellings return 401."""
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


async def test_refresh_prunes_expired_records(server):
    """A successful refresh deletes expired records of all players; a refused one deletes none."""
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


async def test_refresh_reads_only_its_own_session(server):
    """A refresh scans no table unless records have expired, even if the table is small."""
    await server.player("ann")
    ((player, jti),) = server.sql("SELECT user_id, jti FROM refresh_tokens")
    now = datetime.now(UTC)
    ends = now + timedelta(days=30)
    server.sql(
        "INSERT INTO refresh_tokens SELECT gen_random_uuid(), %s, %s FROM generate_series(1, 1000)", (player, ends)
    )
    server.sql("ANALYZE refresh_tokens")
    new = (jti, ends, int(ends.timestamp()), None)  # the same id, so that the token can be spent again
    ran = plan(server.dsn, ROTATE, player, jti, now, *new, "auth:192.0.2.1", 10, 60, None)
    scans = [line for line in ran.text.splitlines() if "Seq Scan" in line and "never executed" not in line]
    assert [line for line in scans if "Seq Scan on retention_clock" not in line] == []  # a table of one row


async def test_login_statements_do_not_contain_the_hash(reactor, server):
    """The server may log statements, and shows them to its users."""
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
    """A clock that returns the time of day."""

    def now(self):
        return datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=self.seconds())


async def test_tokens_expire_in_their_time(reactor, shared_dsn):
    """An access token is valid for 24 hours and a refresh token for 30 days, to the second."""
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


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/sessions"), ("GET", "/api/me"), ("PUT", "/api/me/guest-key")]
)
async def test_access_token_beyond_the_year_9999_is_refused(server, method, path):
    """A signed expiry that is no bigint causes no error of the database."""
    client = await server.player("ann")
    claims = {"sub": (await client.me()).id, "exp": 2**63, "kind": "access"}
    token = jwt.encode(claims, SECRET, "HS256")
    body = {"guest_key": "k" * 22} if method == "PUT" else None
    answer = await server.ask(method, path, body=body, bearer=token)
    assert (answer.status, answer.headers["error-code"]) == (401, "unauthorized")


async def test_login_takes_as_long_for_an_unknown_player(reactor, shared_dsn):
    """The time would reveal which usernames exist otherwise."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, bcrypt_cost=9)
    names = {"known": "ann", "unknown": "nobody", "absurd": "", "over-long": "x" * 500}
    try:
        await running.player("ann")
        times = {kind: [] for kind in names}
        for _ in range(5):  # alternately, so that other load affects both alike
            for kind, name in names.items():
                began = time.perf_counter()
                assert (await refused(running.client().login(name, PASSWORD + "!")))[0] == 401
                times[kind].append(time.perf_counter() - began)
        medians = {kind: statistics.median(each) for kind, each in times.items()}
        print({kind: round(seconds * 1000, 1) for kind, seconds in medians.items()})
        assert max(medians.values()) < 10 * min(medians.values())
    finally:
        await running.service.stopService()
