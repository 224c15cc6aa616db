"""The rate limit: a sliding log in PostgreSQL, shared by all processes (docs/security.md "Bounds")."""

from collections import Counter

import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import Clock

from solisync.access import rate_limit
from solisync.access.rate_limit import AUTH, Limit, RateLimiter
from solisync.errors import TooMany
from solisync.storage import rate_limits
from tests.harness.constants import PASSWORD
from tests.harness.housekeeping import make_housekeeping
from tests.harness.http_requests import new_address
from tests.harness.postgres import run_sql, truncate
from tests.harness.service import start


def started(coroutine):
    return Deferred.fromCoroutine(coroutine)


class Counted:
    """A database that counts statements."""

    def __init__(self, database):
        self._database = database
        self.asked = 0

    async def run(self, *arguments, **options):
        self.asked += 1
        return await self._database.run(*arguments, **options)

    def connection(self, **options):
        return self._database.connection(**options)


@pytest.fixture
def database(shared_dsn, open_database):
    truncate(shared_dsn)
    return Counted(open_database(size=8))


@pytest.fixture
def limiter(database):
    return RateLimiter(database=database, reactor=Clock())


async def wait(limiter, client="a", limit=AUTH):
    """Return the seconds that the client must wait, or 0 when it is admitted."""
    try:
        await limiter.admit(limit, client)
    except TooMany as error:
        return error.retry_after
    return 0


def rewind(dsn, seconds, bucket="auth:a"):
    """Let time pass for a bucket."""
    run_sql(
        dsn,
        "UPDATE rate_limits SET hits = ARRAY(SELECT hit - make_interval(secs => %s) FROM unnest(hits) AS hit)"
        " WHERE bucket = %s",
        (seconds, bucket),
    )


async def test_client_has_ten_requests_in_any_sixty_seconds(limiter, database, shared_dsn):
    """The eleventh is refused until the first leaves the window, the twelfth until the second does, and so on."""
    for _ in range(10):
        rewind(shared_dsn, 3)
        assert await wait(limiter) == 0
    fresh = RateLimiter(database=database, reactor=Clock())  # as in another process
    assert await wait(fresh) == 60 - 27
    rewind(shared_dsn, 33)
    fresh = RateLimiter(database=database, reactor=Clock())
    assert [await wait(fresh), await wait(fresh)] == [0, 3]


async def test_client_that_waits_for_retry_after_is_admitted(limiter, database, shared_dsn):
    """Retry-After is neither a second too short nor too long."""
    for _ in range(10):
        await wait(limiter)
    seconds = await wait(limiter)
    assert seconds == 60
    rewind(shared_dsn, seconds - 1)
    assert await wait(RateLimiter(database=database, reactor=Clock())) == 1
    rewind(shared_dsn, 1)
    limiter._reactor.advance(seconds)
    assert await wait(limiter) == 0


async def test_memory_refuses_no_longer_than_the_database(limiter, shared_dsn):
    """A process's memory is exact: a client is admitted at the moment when there is room."""
    for _ in range(10):
        await wait(limiter)
    rewind(shared_dsn, 58.5)
    assert await wait(limiter) == 2
    limiter._reactor.advance(0.6)
    assert await wait(limiter) == 1
    rewind(shared_dsn, 1.5)
    limiter._reactor.advance(0.9)
    assert await wait(limiter) == 0


async def test_refused_requests_do_not_count(limiter, database, shared_dsn):
    """Refusals by any number of processes don't extend the wait."""
    for _ in range(10):
        await wait(limiter)
    before = run_sql(shared_dsn, "SELECT hits FROM rate_limits")
    for _ in range(20):
        assert await wait(RateLimiter(database=database, reactor=Clock()))
    assert run_sql(shared_dsn, "SELECT hits FROM rate_limits") == before


async def test_refused_client_costs_no_statement(limiter, database):
    """After the first refusal, a process answers from memory until there is room."""
    for _ in range(11):
        await wait(limiter)
    asked = database.asked
    for _ in range(1000):
        assert await wait(limiter) == 60
    assert database.asked == asked


async def test_memory_is_bounded(limiter, database, monkeypatch):
    """A process remembers at most REMEMBERED clients. The database refuses a forgotten client."""
    monkeypatch.setattr(rate_limit, "REMEMBERED", 3)
    none = Limit("none", most=1, seconds=60)
    for client in range(5):
        assert [await wait(limiter, client, none), await wait(limiter, client, none)] == [0, 60]
    assert len(limiter._refused_until) == 3
    asked = database.asked
    assert [await wait(limiter, client, none) for client in (4, 0)] == [60, 60]
    assert database.asked == asked + 1


async def test_simultaneous_requests_are_counted_exactly(database):
    """A new client sends thirty requests through two processes; ten are admitted."""
    limiters = [RateLimiter(database=database, reactor=Clock()) for _ in range(2)]
    answers = await gatherResults([started(wait(limiters[n % 2])) for n in range(30)])
    assert Counter(answers) == {0: 10, 60: 20}


async def test_clients_and_limits_are_separate(limiter):
    """Requests of other clients, or against other limits, don't count."""
    for client in ("a", "b"):
        assert [bool(await wait(limiter, client)) for _ in range(11)] == [False] * 10 + [True]
    assert await wait(limiter, "a", Limit("other", most=5, seconds=60)) == 0


async def test_requests_from_the_future_are_forgotten(limiter, shared_dsn):
    """A clock that was set back would refuse clients otherwise."""
    for _ in range(10):
        await wait(limiter)
    rewind(shared_dsn, -3600)
    assert await wait(limiter) == 0


@pytest.mark.parametrize("most", [4, 10])
async def test_changed_limit_applies_immediately(limiter, database, most):
    """During an upgrade two builds share a bucket with different limits; each build applies its own."""
    for _ in range(5):
        await wait(limiter, limit=Limit("auth", most=5, seconds=60))
    assert bool(await wait(limiter, limit=Limit("auth", most=most, seconds=60))) is (most == 4)


async def test_buckets_that_refuse_no_client_are_pruned(limiter, database, shared_dsn, reactor):
    """Housekeeping deletes them in batches, and no others."""
    run_sql(
        shared_dsn,
        "INSERT INTO rate_limits SELECT 'auth:' || n, ARRAY[now() - interval '61 s'], true"
        " FROM generate_series(1, 2500) AS n",
    )
    await wait(limiter)
    assert await database.run(rate_limits.prune, windows={"auth": 60}, most=100) == 100
    await make_housekeeping(database, reactor, limits=(AUTH,)).prune()
    assert run_sql(shared_dsn, "SELECT bucket FROM rate_limits") == [("auth:a",)]


async def test_limit_is_shared_and_checked_before_the_body(reactor, shared_dsn, server):
    """A client sends eleven empty requests alternately to two services and three routes: ten get 400, then one 429."""
    other = await start(reactor, shared_dsn)
    address, neighbour = new_address(), new_address()
    routes = ["register", "login", "refresh"]
    answers = [
        await (server, other)[turn % 2].ask("POST", f"/api/auth/{routes[turn % 3]}", body=b"", address=address)
        for turn in range(12)
    ]
    assert [answer.status for answer in answers] == [400] * 10 + [429] * 2
    assert answers[10].json == {"error": "too many requests"}
    assert 58 <= int(answers[10].headers["retry-after"]) <= 60
    rewind(shared_dsn, int(answers[10].headers["retry-after"]), f"auth:{address}")
    third = await start(reactor, shared_dsn)
    assert (await third.ask("POST", "/api/auth/login", body=b"", address=address)).status == 400
    assert (await server.ask("POST", "/api/auth/login", body=b"", address=neighbour)).status == 400
    await gatherResults([other.service.stopService(), third.service.stopService()])


async def test_limit_of_the_settings_applies(reactor, shared_dsn):
    """SOLISYNC_AUTH_LIMIT changes the limit of register, login and refresh only."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_AUTH_LIMIT": "2/3600"})
    address = new_address()
    try:
        client = running.client(address)
        await client.register("ann", PASSWORD)
        await client.refresh()
        refusal = await running.ask("POST", "/api/auth/login", body={}, address=address)
        assert (refusal.status, 3590 < int(refusal.headers["retry-after"]) <= 3600) == (429, True)
        assert (await running.ask("POST", "/api/analytics", body={}, address=address)).status == 400
    finally:
        await running.service.stopService()


async def test_buckets_are_kept_for_the_window_of_their_limit(database, shared_dsn, reactor):
    """A bucket of a minute goes before one of ten minutes. Unknown buckets are kept for the longest window."""
    run_sql(
        shared_dsn,
        "INSERT INTO rate_limits SELECT name || ':' || seconds, ARRAY[now() - make_interval(secs => seconds)], true"
        " FROM unnest(ARRAY['auth', 'admin_acts', 'later']) AS name, unnest(ARRAY[59, 61, 599, 601]) AS seconds",
    )
    await make_housekeeping(database, reactor).prune()
    kept = {bucket for (bucket,) in run_sql(shared_dsn, "SELECT bucket FROM rate_limits")}
    unknown = {f"later:{age}" for age in (59, 61, 599, 601)}  # kept for an hour, the longest window of all limits
    assert kept == {"auth:59"} | {f"admin_acts:{age}" for age in (59, 61, 599)} | unknown


async def test_buckets_are_kept_while_the_limit_of_the_settings_counts_them(limiter, database, shared_dsn, reactor):
    long = Limit("auth", most=1, seconds=3600)
    assert await wait(limiter, limit=long) == 0
    rewind(shared_dsn, 3500)
    rounds = make_housekeeping(database, reactor, limits=(long,))
    await rounds.prune()
    assert await wait(RateLimiter(database=database, reactor=Clock()), limit=long) > 0
