"""Floods: endless bodies, clients that never stop sending requests, and a million clients."""

import os
import time
from contextlib import suppress
from random import Random

import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import Clock, deferLater
from twisted.internet.threads import deferToThread

from solisync.access.rate_limit import AUTH, REMEMBERED, RateLimiter
from solisync.errors import TooMany
from solisync.web.wire.connection import LINGER_BYTES
from tests.fire.raw import Watch, head, percentile, pipeline, pour, regular_files, rss, running, volley
from tests.harness.concurrency import at_once
from tests.harness.housekeeping import make_housekeeping
from tests.harness.http_requests import new_address
from tests.harness.players import players
from tests.harness.postgres import run_sql, truncate

MIB = 2**20
BUSY = 10  # how many times slower than the targets a busy machine may be


# Bodies.


@pytest.mark.short
async def test_endless_body_is_not_read(serve, shared_dsn, tmp_path, full, figure):
    """300 MiB to any URL, announced or in chunks, are refused after a few. No memory and no file grows with them."""
    truncate(shared_dsn)
    process = await serve(shared_dsn, TMPDIR=str(tmp_path))
    ((_, _, access),) = players(shared_dsn, 1)
    lines = [f"Authorization: Bearer {access}", "Content-Type: image/png", f"X-Forwarded-For: {new_address()}"]
    targets = [("PUT", "/api/me/avatar"), ("POST", "/api/sync/push"), ("POST", "/api/auth/login"), ("POST", "/nope")]
    targets += [("GET", "/health"), ("GET", "/api/me"), ("DELETE", "/health"), ("OPTIONS", "*")]
    announced = [f"Content-Length: {300 * MIB}"], bytes(65536), 300 * 16
    chunked = ["Transfer-Encoding: chunked"], b"10000\r\n" + bytes(65536) + b"\r\n", 300 * 16
    bodies = [(*target, *body) for target in targets for body in (announced, chunked)] * (10 if full else 1)

    def send(body):
        method, path, framing, block, blocks = body
        return pour(process.port, head(method, path, *lines, *framing), block, blocks)

    await at_once(8, send, bodies[:8])
    before = regular_files(process.pid)
    watch = Watch(process, {"health": head("GET", "/health")})
    began = time.monotonic()
    with running(watch):
        sent = await at_once(8, send, bodies)
    figure(
        f"{len(sent)} bodies of 300 MiB in {time.monotonic() - began:.1f} s: at most {max(sent) / MIB:.1f} MiB"
        f" of one went out, what the kernels buffered included; {watch}"
    )
    assert max(sent) < LINGER_BYTES + 48 * MIB  # the kernel may buffer that much of a connection
    assert watch.files <= before
    assert list(tmp_path.iterdir()) == []
    assert watch.growth_mib < 20
    assert watch.p99("health") < 0.05 * BUSY


# Rate limits.


def attempt(*forwarded):
    """An auth request that counts only towards the rate limit: its body is empty."""
    lines = [line for hop in forwarded for line in (f"X-Forwarded-For: {hop}", "X-Real-IP: 192.0.2.77")]
    return head("POST", "/api/auth/login", *lines, "Content-Length: 0")


def transactions(dsn, name):
    """Return how many transactions a database has run, once no client is connected to it."""
    while run_sql(dsn, "SELECT 1 FROM pg_stat_activity WHERE datname = %s", (name,)):
        time.sleep(0.01)
    return run_sql(dsn, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s", (name,))[0][0]


async def test_refused_flood_takes_no_statement(serve, postgres, empty_database, full, figure):
    """The number of refused requests doesn't matter."""
    count = 20_000 if full else 2_000
    process = await serve(empty_database)
    address = new_address()
    assert await deferToThread(pipeline, process.port, [attempt(address)] * 11) == {400: 10, 429: 1}
    began = time.monotonic()
    floods = await at_once(4, lambda _: pipeline(process.port, [attempt(address)] * (count // 4)), range(4))
    seconds = time.monotonic() - began
    assert floods == [{429: count // 4}] * 4
    process.stop()
    seen = await deferToThread(transactions, postgres.dsn, empty_database.rpartition("dbname=")[2])
    figure(f"{count} refused at {count / seconds:.0f}/s; the database has seen {seen} transactions in all")
    assert seen < count / 10


async def test_rate_limit_holds_across_four_processes(serve, shared_dsn):
    """Of 40 simultaneous requests of one client, spread over four processes, exactly ten are admitted."""
    truncate(shared_dsn)
    processes = await gatherResults([Deferred.fromCoroutine(serve(shared_dsn)) for _ in range(4)])
    for address in (new_address(), new_address()):
        turns = [process for process in processes for _ in range(10)]
        answers = await at_once(20, lambda process, own=address: volley(process.port, [attempt(own)])[0][0], turns)
        assert sorted(answers) == [400] * 10 + [429] * 30
        later = [await deferToThread(pipeline, process.port, [attempt(address)]) for process in processes]
        assert later == [{429: 1}] * 4


@pytest.mark.short
@pytest.mark.parametrize("trusted", [True, False], ids=["a proxy that appends", "no proxy"])
async def test_forged_headers_do_not_widen_the_limit(serve, shared_dsn, trusted):
    """A client that writes the headers of proxies still counts as one client."""
    truncate(shared_dsn)
    process = await serve(shared_dsn, SOLISYNC_TRUSTED_PROXIES="127.0.0.1" if trusted else "10.0.0.0/8")
    random = Random(7)
    own = new_address()
    forgeries = ["198.51.100.{}", "127.0.0.1, 198.51.100.{}", "198.51.100.{}:80", "[2001:db8:{}::1]", '"198.51.100.{}']
    requests = []
    for number in range(60):
        forged = random.choice(forgeries).format(number)
        lines = [f"X-Real-IP: 198.51.100.{number}", f"Forwarded: for=198.51.100.{number}", "Content-Length: 0"]
        if trusted:  # appended to the line, or as a line of its own
            lines.insert(0, random.choice(["X-Forwarded-For: {}, {}", "X-Forwarded-For: {}\r\nX-Forwarded-For: {}"]))
            lines[0] = lines[0].format(forged, own)
        else:
            lines.insert(0, f"X-Forwarded-For: {forged}")
        requests.append(head("POST", "/api/auth/refresh", *lines))
    assert await deferToThread(pipeline, process.port, requests) == {400: 10, 429: 50}
    if trusted:
        neighbour = [attempt(new_address())] * 11
        assert await deferToThread(pipeline, process.port, neighbour) == {400: 10, 429: 1}


class Refusing:
    """A database in which the limit of every client is reached."""

    async def run(self, *_arguments, **_options):
        return 30.0


async def test_million_refused_clients_fit_into_memory(full, figure):
    """The memory for refused clients doesn't grow with their number."""
    count = 1_000_000 if full else 50_000
    limiter = RateLimiter(database=Refusing(), reactor=Clock())
    before, began = rss(os.getpid()), time.monotonic()
    for number in range(count):
        with suppress(TooMany):
            await limiter.admit(AUTH, f"2001:db8:{number >> 16:x}:{number & 65535:x}::/64")
    growth = (rss(os.getpid()) - before) / MIB
    figure(f"{count} clients in {time.monotonic() - began:.1f} s: memory {growth:+.1f} MiB")
    assert len(limiter._refused_until) == REMEMBERED
    assert growth < 20


async def test_million_clients_are_pruned_from_the_table(reactor, migrated_database, open_database, full, figure):
    """Rows of clients that are no longer refused are pruned in the next round, without delaying a request."""
    count = 1_000_000 if full else 20_000
    sql = (
        "INSERT INTO rate_limits SELECT %s || n, ARRAY[now() - interval '61 s'], true FROM generate_series(1, %s) AS n"
    )
    await deferToThread(run_sql, migrated_database, sql, ("auth:2001:db8:", count))
    ((size,),) = run_sql(migrated_database, "SELECT pg_total_relation_size('rate_limits')")
    database = open_database(migrated_database, size=2)
    limiter = RateLimiter(database=database, reactor=reactor)
    rounds = make_housekeeping(database, reactor)
    began, waits = time.monotonic(), []
    pruning = Deferred.fromCoroutine(rounds.prune())
    while not pruning.called:
        asked = time.monotonic()
        await limiter.admit(AUTH, new_address())
        waits.append(time.monotonic() - asked)
        await deferLater(reactor, 0.005)
    await pruning
    seconds = time.monotonic() - began
    ((left,),) = run_sql(migrated_database, "SELECT count(*) FROM rate_limits")
    figure(
        f"{count} rows take {size / MIB:.0f} MiB ({size / count:.0f} bytes each) and are pruned in {seconds:.1f} s;"
        f" during that, others' {len(waits)} requests are counted in {percentile(waits, 0.99) * 1000:.1f} ms (p99)"
    )
    assert left == len(waits)
    assert size < 400 * count
    assert percentile(waits, 0.99) < 0.05 * BUSY
