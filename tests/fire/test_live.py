"""Streams of events while processes and databases are killed, and while thousands come and go: nobody else notices."""

import os
import signal
import time

from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.harness.concurrency import gather, until
from tests.harness.constants import PASSWORD
from tests.harness.event_streams import connect, listeners, won
from tests.harness.http_requests import http_client
from tests.harness.postgres import truncate
from tests.harness.processes import postmaster, replaced, workers
from tests.harness.service import start

WIDTH = 50  # streams that are opened at once


async def open_all(reactor, port, tokens):
    """A stream for each token, once all have begun."""

    async def begin(token):
        stream = await connect(reactor, port, token)
        assert stream.status == 200, stream.headers
        await stream.next()
        return stream

    return await gather(WIDTH, begin, tokens)


async def test_a_reload_ends_a_thousand_streams(serve, reactor, shared_dsn, figure):
    """Each is told why and when to come back, and finds a new worker, where events go on."""
    truncate(shared_dsn)
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    ann = await process.player()
    tokens = [*listeners(shared_dsn, 1_000)]
    streams = await open_all(reactor, process.port, tokens)
    began = time.monotonic()
    os.kill(process.pid, signal.SIGHUP)
    for stream in streams:
        assert await stream.ended() == "stopping"
        assert 1_000 <= stream.retries[-1] <= 10_000
    await deferToThread(replaced, process, 1)
    figure(f"1,000 streams ended by a reload within {time.monotonic() - began:.1f} s")
    again = await open_all(reactor, process.port, tokens)
    mine = await connect(reactor, process.port, ann.tokens.access_token)
    await won(ann)
    await mine.until(lambda: [name for name, _ in mine.events] == ["hello", "progress"])
    for stream in again:
        stream.transport.abortConnection()
    assert process.stop() == 0


async def test_a_killed_worker_costs_its_streams_alone(serve, reactor, shared_dsn):
    """Its streams break off, and open again; those of the other worker go on, and hear of what the new one stores."""
    truncate(shared_dsn)
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    ann = await process.player()
    streams = await open_all(reactor, process.port, [ann.tokens.access_token] * 6)
    killed = min(workers(process))
    os.kill(killed, signal.SIGKILL)
    await until(reactor, lambda: killed not in workers(process) and len(workers(process)) == 2)
    left = [stream for stream in streams if not stream.lost]
    (again,) = await open_all(reactor, process.port, [ann.tokens.access_token])
    await won(ann)
    for stream in (*left, again):
        assert (await stream.next())[0] == "progress"
    assert process.stop() == 0


async def test_streams_outlive_the_database(durable, reactor):
    """After a kill -9 of PostgreSQL they are still there, and are told what was stored meanwhile, on any node."""
    nodes = [await start(reactor, durable.dsn) for _ in range(2)]
    try:
        ann = await nodes[0].player()
        other = nodes[1].client()
        await other.login("ann", PASSWORD)
        (stream,) = await open_all(reactor, nodes[0].port, [ann.tokens.access_token])
        os.kill(postmaster(durable.data_dir), signal.SIGKILL)
        began = time.monotonic()
        while True:
            try:
                await won(other)
                break
            except Exception:
                assert time.monotonic() - began < 120
                await deferLater(reactor, 0.2)
        await stream.next()
        await until(reactor, lambda: nodes[0].service._live.bus.hears)
        await won(other)
        tag = (await nodes[0].ask("GET", "/api/sync/pull", bearer=ann.tokens.access_token)).headers["etag"]
        await stream.until(lambda: tag == f'W/"{stream.events[-1][1]["revision"]}"')
    finally:
        for node in nodes:
            await node.service.stopService()


async def test_nobody_notices_that_thousands_come_and_go(serve, reactor, shared_dsn, full, figure):
    """While 2,000 streams open, are cut and open again, /health answers as fast as otherwise."""
    truncate(shared_dsn)
    process = await serve(shared_dsn)
    tokens = listeners(shared_dsn, 2_000)
    times = []
    asking = True

    async def ask():
        http = http_client(keep=True)
        while asking:
            began = time.monotonic()
            response = await http.request("GET", f"{process.url}/health")
            assert response.code == 200
            await response.content()
            times.append(time.monotonic() - began)
            await deferLater(reactor, 0.01)

    from twisted.internet.defer import Deferred

    asked = Deferred.fromCoroutine(ask())
    for _ in range(2):
        for stream in await open_all(reactor, process.port, tokens):
            stream.transport.abortConnection()
    asking = False
    await asked
    slowest = sorted(times)[int(len(times) * 0.99)]
    figure(f"/health while 2,000 streams come and go twice: p99 {1000 * slowest:.0f} ms of {len(times):,}")
    assert slowest < 0.5
    assert process.stop() == 0
