"""Races over HTTP against two processes on one database, which decides each race once."""

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import bcrypt
import pytest
from twisted.internet.defer import Deferred, DeferredSemaphore, gatherResults
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.access.tokens import Tokens
from solisync.storage.players import accounts, sessions
from solisync.storage.rate_limits import Hit
from tests.harness.concurrency import at_once
from tests.harness.constants import PASSWORD, SECRET
from tests.harness.http_requests import ask, new_address, refresh
from tests.harness.players import players
from tests.harness.postgres import connect, run_sql, truncate

LEFT = "SELECT count(*) FROM refresh_tokens JOIN users ON user_id = users.id WHERE username = %s"


def started(coroutine):
    return Deferred.fromCoroutine(coroutine)


@pytest.fixture
def two(nodes):
    """Alternate between the two nodes."""
    return itertools.cycle(nodes)


@pytest.fixture
def database(open_database):
    return open_database(size=4)


async def test_one_of_a_thousand_refreshes_wins(two, shared_dsn, full):
    """The uses of one token come over 50 connections to 2 processes: one gets 200, all others 401."""
    count = 1_000 if full else 80
    ((_, token, _),) = players(shared_dsn, 1)
    answers = await at_once(50, lambda process: refresh(process, token), itertools.islice(two, count))
    assert Counter(status for status, _, _ in answers) == {200: 1, 401: count - 1}
    assert {body["error"] for status, body, _ in answers if status == 401} == {"unauthorized"}
    assert run_sql(shared_dsn, "SELECT count(*) FROM refresh_tokens") == [(1,)]


async def test_one_of_a_hundred_registrations_wins(two, shared_dsn):
    """Of 100 simultaneous registrations of one name, 99 get 409. One player with one session is left."""
    body = {"username": "ann", "password": PASSWORD}
    answers = await at_once(
        100, lambda process: ask(process, "POST", "/api/auth/register", body), itertools.islice(two, 100)
    )
    assert Counter(status for status, _, _ in answers) == {200: 1, 409: 99}
    counts = "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM refresh_tokens)"
    assert run_sql(shared_dsn, counts) == [(1, 1)]
    (winner,) = (body for status, body, _ in answers if status == 200)
    assert refresh(next(two), winner["refresh_token"])[0] == 200


async def test_no_session_older_than_a_reset_survives(two, nodes, shared_dsn, database, no_deadlocks, reactor, full):
    """A reset, a login with the old password and a refresh run together, again and again. No token is left."""
    passwords = [PASSWORD, PASSWORD + " again"]
    hashes = [bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode() for password in passwords]
    statuses = Counter()
    random = Random(1)

    async def rounds(number):
        name = f"player{number}"
        await database.transact(accounts.reset_password, name, hashes[0])
        login, again = nodes if number % 2 else reversed(nodes)
        for turn in range(15):  # with three tokens each: a player gets no more than 60 in a minute
            body = {"username": name, "password": passwords[turn % 2]}
            status, pair, _ = await deferToThread(ask, login, "POST", "/api/auth/login", body)
            assert status == 200
            outcomes = await gatherResults(
                [
                    deferToThread(refresh, again, pair["refresh_token"]),
                    started(reset(name, hashes[(turn + 1) % 2])),
                    deferToThread(ask, login, "POST", "/api/auth/login", body),
                ]
            )
            assert outcomes[1]  # whose password it was
            statuses.update([("refresh", outcomes[0][0]), ("login", outcomes[2][0])])
            assert run_sql(shared_dsn, LEFT, (name,)) == [(0,)]

    async def reset(name, password_hash):
        await deferLater(reactor, random.uniform(0, 0.03))
        return await database.transact(accounts.reset_password, name, password_hash)

    count = 60 if full else 12
    players(shared_dsn, count)
    gate = DeferredSemaphore(10)
    await gatherResults([gate.run(lambda number=number: started(rounds(number))) for number in range(count)])
    print(statuses)
    assert set(statuses) == {(kind, status) for kind in ("refresh", "login") for status in (200, 401)}


def expire(dsn, owner, count):
    """Give a player sessions that have expired."""
    run_sql(
        dsn,
        "INSERT INTO refresh_tokens SELECT gen_random_uuid(), %s, now() - n * interval '1 second'"
        " FROM generate_series(1, %s) AS n",
        (owner, count),
    )


def expired(dsn):
    return run_sql(dsn, "SELECT count(*) FROM refresh_tokens WHERE expires_at <= now()")[0][0]


async def test_refresh_prunes_a_thousand_expired_tokens_of_any_player(two, shared_dsn):
    """A refresh skips tokens that others have locked. A refused refresh prunes none."""
    (_, token, _), (other, _, _) = players(shared_dsn, 2)
    expire(shared_dsn, other, 1001)
    assert refresh(next(two), token + "x")[0] == 401
    status, pair, _ = await deferToThread(refresh, next(two), token)
    assert (status, expired(shared_dsn)) == (200, 1)
    expire(shared_dsn, other, 9)
    holder = connect(shared_dsn)
    holder.cursor().execute("BEGIN; SELECT FROM refresh_tokens WHERE expires_at <= now() LIMIT 4 FOR UPDATE")
    status, pair, _ = await deferToThread(refresh, next(two), pair["refresh_token"])
    assert (status, expired(shared_dsn)) == (200, 4)
    holder.close()
    assert refresh(next(two), token)[0] == 401
    assert expired(shared_dsn) == 4


async def test_many_refreshes_prune_without_deadlock(two, shared_dsn, database, no_deadlocks, full):
    """300 players refresh, some delete themselves and housekeeping runs, beside thousands of expired tokens."""
    everybody = players(shared_dsn, 300)
    for owner, _, _ in everybody[:20]:
        expire(shared_dsn, owner, 1_000 if full else 80)

    def job(player):
        number, (_, token, access) = player
        if number < 20:
            return ask(next(two), "DELETE", "/api/account", bearer=access)[0]
        return refresh(next(two), token)[0]

    order = sorted(enumerate(everybody), key=lambda player: player[0] % 15)
    statuses, pruned = await gatherResults(
        [
            started(at_once(30, job, order)),
            gatherResults([started(database.run(sessions.prune, most=100)) for _ in range(50)]),
        ]
    )
    assert set(statuses) == {200}
    assert max(pruned) <= 100
    assert expired(shared_dsn) == 0
    assert run_sql(shared_dsn, "SELECT count(*) FROM refresh_tokens") == [(280,)]


async def test_refresh_on_a_node_with_a_fast_clock_prunes_no_live_session(shared_dsn, database):
    """The clock is four weeks ahead of the database. Sessions that end within that time stay."""
    truncate(shared_dsn)
    (user, token, _), (other, _, _) = players(shared_dsn, 2)
    run_sql(shared_dsn, "INSERT INTO refresh_tokens VALUES (gen_random_uuid(), %s, now() + interval '1 h')", (other,))
    ahead = datetime.now(UTC) + timedelta(days=28)
    spent = Tokens(SECRET.encode()).read_refresh(token, ahead).jti
    record = Tokens(SECRET.encode()).record(ahead, None)
    hit = Hit(new_address(), 10, 60)
    assert await database.run(sessions.rotate, user, record, spent=spent, now=ahead, hit=hit) != (None, None)
    assert run_sql(shared_dsn, "SELECT count(*) FROM refresh_tokens WHERE user_id = %s", (other,)) == [(2,)]
