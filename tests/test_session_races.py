"""Races of sessions, over HTTP against two processes on one database."""

import itertools
import json
import socket
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import uuid4

import bcrypt
import jwt
import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.errors import Unavailable
from solisync.rules.sessions import RefreshRecord
from solisync.storage.players import accounts, sessions
from solisync.storage.rate_limits import Hit
from tests.harness.concurrency import at_once, gather
from tests.harness.constants import PASSWORD
from tests.harness.http_requests import ask, refresh
from tests.harness.postgres import run_sql

HOURS_24 = 86_400
LEFT = "SELECT count(*) FROM refresh_tokens JOIN users ON user_id = users.id WHERE username = %s"


@pytest.fixture
def database(open_database):
    return open_database(size=4)


def expiry(pair):
    return jwt.decode(pair["access_token"], options={"verify_signature": False})["exp"]


def register(node, name="ann"):
    status, pair, _ = ask(node, "POST", "/api/auth/register", {"username": name, "password": PASSWORD})
    assert status == 200
    return pair


def log_in(node, password=PASSWORD, name="ann"):
    return ask(node, "POST", "/api/auth/login", {"username": name, "password": password})


def change(node, pair, current, new):
    body = {"current_password": current, "new_password": new}
    return ask(node, "PUT", "/api/me/password", body, bearer=pair["access_token"])


async def test_no_two_access_tokens_of_a_player_expire_in_the_same_second(nodes, figure):
    """50 logins, refreshes, logouts and password changes run together. Each `exp` differs, within a minute of 24 h."""
    began = time.time()
    first = await deferToThread(register, nodes[0])
    answers = await at_once(25, log_in, itertools.islice(itertools.cycle(nodes), 50))
    assert {status for status, _, _ in answers} == {200}
    pairs = [first, *(pair for _, pair, _ in answers)]

    def end(pair):
        assert ask(nodes[0], "POST", "/api/auth/logout", {"refresh_token": pair["refresh_token"]})[0] == 200

    await at_once(5, end, pairs[:5])
    for node, (current, new) in zip(nodes, [(PASSWORD, "new" + PASSWORD), ("new" + PASSWORD, PASSWORD)], strict=True):
        status, pair, _ = await deferToThread(change, node, pairs[-1], current, new)
        assert status == 200
        pairs.append(pair)
    for _ in range(3):
        status, pair, _ = await deferToThread(refresh, nodes[1], pairs[-1]["refresh_token"])
        assert status == 200
        pairs.append(pair)
    expiries = [expiry(pair) for pair in pairs]
    assert len(set(expiries)) == len(pairs) == 56
    assert began + HOURS_24 - 61 <= min(expiries)
    assert max(expiries) <= time.time() + HOURS_24
    figure(
        f"56 access tokens of one player expire in 56 seconds, the first {began + HOURS_24 - min(expiries):.0f} s early"
    )


async def test_refreshes_leave_seconds_for_logins(nodes, shared_dsn, database):
    """A thief who refreshes without end, from any addresses, doesn't keep the player from logging in.

    With no second left at all, a login returns 503 too.
    """
    await deferToThread(register, nodes[0])
    ((player, hashed, jti),) = run_sql(
        shared_dsn,
        "SELECT users.id::text, password_hash, jti::text FROM users JOIN refresh_tokens ON user_id = users.id",
    )
    now = datetime.now(UTC)
    wanted = int(now.timestamp()) + HOURS_24
    taken = "UPDATE users SET access_expiries = ARRAY(SELECT generate_series(%s - %s, %s)::bigint)"

    def record():
        return RefreshRecord(str(uuid4()), now + timedelta(days=30), wanted, None)

    async def refresh():
        hit = Hit(str(uuid4()), 1, 60)
        return await database.run(sessions.rotate, player, record(), spent=jti, now=now, hit=hit)

    run_sql(shared_dsn, taken, (wanted, sessions.TOKENS_MAX - 1, wanted))
    with pytest.raises(Unavailable):
        await refresh()
    for _ in range(4):
        assert await database.run(sessions.begin, player, record(), verified_hash=hashed)
    run_sql(shared_dsn, taken, (wanted, sessions.TOKENS_MAX - 2, wanted))
    assert (await refresh())[1].expiry == wanted - sessions.TOKENS_MAX + 1
    run_sql(shared_dsn, taken, (wanted, 61, wanted + 60))
    assert (await deferToThread(log_in, nodes[1]))[0] == 503


async def test_no_session_older_than_a_password_change_survives(
    nodes, shared_dsn, database, no_deadlocks, reactor, full
):
    """A change, a refresh, a login and a reset run together. The remaining sessions began with the last password."""
    random, outcomes = Random(1), Counter()
    quick_hash = bcrypt.hashpw(b"after a reset", bcrypt.gensalt(4)).decode()

    async def reset(name):
        await deferLater(reactor, random.uniform(0, 0.03))
        await database.transact(accounts.reset_password, name, quick_hash)

    async def rounds(number):
        name, password = f"player{number}", PASSWORD
        one, two = nodes if number % 2 else reversed(nodes)
        await deferToThread(register, one, name)
        for turn in range(4):  # a player may try five passwords a minute
            _, pair, _ = await deferToThread(log_in, two, password, name)
            _, other, _ = await deferToThread(log_in, two, password, name)
            changed, last = f"changed {turn}", turn % 2 == 0
            racing = [
                deferToThread(change, one, pair, password, changed),
                deferToThread(refresh, two, other["refresh_token"]),
                deferToThread(log_in, two, password, name),
            ]
            if last:
                racing.append(Deferred.fromCoroutine(reset(name)))
            answers = await gatherResults(racing)
            outcomes.update(zip(("change", "refresh", "login"), (answer[0] for answer in answers[:3]), strict=True))
            # A reset comes last: after it, the change would not find the password that it had verified. Of the
            # change, its own session is left.
            assert run_sql(shared_dsn, LEFT, (name,)) == [(0 if last else 1,)]
            assert (await deferToThread(log_in, one, password, name))[0] == 401
            password = "after a reset" if last else changed

    await gather(10, rounds, range(50 if full else 10))
    print(outcomes)
    assert {status for _, status in outcomes} == {200, 401}
    assert outcomes["change", 200]


async def test_hang_up_during_a_password_change_leaves_one_password(nodes, shared_dsn, reactor, full):
    """Either the old or the new password logs in afterwards, and never both."""
    names = [f"player{number}" for number in range(20 if full else 5)]
    pairs = [await deferToThread(register, nodes[0], name) for name in names]
    random = Random(2)

    async def hang_up(item):
        name, pair = item
        body = json.dumps({"current_password": PASSWORD, "new_password": "new horse"})
        with socket.create_connection(("127.0.0.1", nodes[0].port)) as connection:
            connection.sendall(
                f"PUT /api/me/password HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {pair['access_token']}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            await deferLater(reactor, random.uniform(0, 0.03))
        await deferLater(reactor, 0.5)  # for the change to end, as it nearly always has by then
        for _ in range(2):  # once more if it was committed between the two logins
            answers = [await deferToThread(log_in, nodes[1], password, name) for password in (PASSWORD, "new horse")]
            accepted = sorted(status for status, _, _ in answers)
            if accepted == [200, 401]:
                break
        assert accepted == [200, 401]

    await gather(5, hang_up, zip(names, pairs, strict=True))
