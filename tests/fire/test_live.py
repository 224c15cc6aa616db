"""Streams of events while processes and databases are killed, and thousands come and go: other clients don't notice."""

import os
import signal
import subprocess
import sys
import time

import pytest
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.events import stream_upkeep
from tests.fire.raw import Watch
from tests.harness.concurrency import gather, until
from tests.harness.constants import PASSWORD, ROOT
from tests.harness.event_streams import connect, listeners, won
from tests.harness.postgres import truncate
from tests.harness.processes import free_port, postmaster, replaced, workers
from tests.harness.service import environment, ready, start

WIDTH = 50  # streams that are opened at the same time

GAME = (
    b'{"mode": "Classic", "draw_mode": "DrawOne", "final_score": 1, "time_seconds": 1, "recorded_at": "2026-01-01",'
    b' "moves": []}'
)


async def open_all(reactor, port, tokens):
    """Open a stream for each token; return when all have begun."""

    async def begin(token):
        stream = await connect(reactor, port, token)
        assert stream.status == 200, stream.headers
        await stream.next()
        return stream

    return await gather(WIDTH, begin, tokens)


async def test_reload_moves_a_thousand_streams_to_new_workers(serve, reactor, shared_dsn, figure):
    """`end` has the reason and the time to come back. A stream that comes back early finds a new worker, too."""
    truncate(shared_dsn)
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    ann = await process.player()
    tokens = [*listeners(shared_dsn, 1_000)]
    streams = await open_all(reactor, process.port, tokens)
    began = time.monotonic()
    os.kill(process.pid, signal.SIGHUP)

    async def come_back(stream, token):
        assert await stream.ended() == "stopping"
        assert 1_000 <= stream.retries[-1] <= 10_000
        await deferLater(reactor, stream.retries[-1] / 5_000)
        (back,) = await open_all(reactor, process.port, [token])
        return back

    again = await gather(len(tokens), lambda pair: come_back(*pair), [*zip(streams, tokens, strict=True)])
    await deferToThread(replaced, process, 1)
    figure(f"1,000 streams ended by a reload were back within {time.monotonic() - began:.1f} s")
    ended_twice = sum(stream.lost for stream in again)
    figure(f"{ended_twice} of them ended twice")
    assert ended_twice < len(tokens) // 6  # a quarter, if the old worker took its part of the connections
    mine = await connect(reactor, process.port, ann.tokens.access_token)
    await won(ann)
    await mine.until(lambda: [name for name, _ in mine.events] == ["hello", "progress"])
    for stream in again:
        stream.transport.abortConnection()
    assert process.stop() == 0


async def test_killed_worker_ends_only_its_own_streams(serve, reactor, shared_dsn):
    """These streams open again. Streams of the other worker continue, with events from the new worker."""
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
    """After a kill -9 of PostgreSQL the streams report what was stored on any node."""
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
        await until(reactor, lambda: nodes[0].service.parts.bus.hears)
        await won(other)
        tag = (await nodes[0].ask("GET", "/api/sync/pull", bearer=ann.tokens.access_token)).headers["etag"]
        await stream.until(lambda: tag == f'W/"{stream.events[-1][1]["revision"]}"')
    finally:
        for node in nodes:
            await node.service.stopService()


@pytest.mark.needs("git")
async def test_node_without_streams_works_beside_new_nodes(launch, server, reactor, place, listen, monkeypatch):
    """The older node has the version before streams, on the same database.

    `hello` reports what it stores, as does the next event here. Its uploads are checked here. Sessions that it ends
    are found within a minute.
    """
    monkeypatch.setattr(stream_upkeep, "TICK_SECONDS", 0.25 / 30)  # a minute passes in two seconds
    older = await deferToThread(start_older, launch, place, server.dsn)
    ann = await server.player()
    there = older.client()
    await ready(reactor, there)
    await there.login("ann", PASSWORD)
    assert (await older.ask("GET", "/api/events", bearer=there.tokens.access_token)).status == 404
    stream = await listen(server, ann)
    await stream.next()
    await won(there)
    _, hello = await (await listen(server, ann)).next()
    assert hello["revision"] is not None
    await won(ann)
    name, progress = await stream.next()
    assert (name, len(stream.events)) == ("progress", 2)
    assert progress["revision"] != hello["revision"]
    checking = await start(reactor, server.dsn, settings={"SOLISYNC_CHECKERS": "1"})
    replay_id = await there.upload_replay(GAME)
    name, verdict = await stream.next()
    assert (name, verdict["replay_id"]) == ("verdict", replay_id)
    await checking.service.stopService()
    await there.end_sessions()
    assert await stream.ended() == "session_ended"
    assert older.stop() == 0


def start_older(launch, place, dsn):
    """Start a service from the commit before the one that added the bus."""
    found = git("log", "--diff-filter=A", "--format=%H", "--", "solisync/events/bus.py").decode().split()
    if not found:
        pytest.skip("the history is not here")
    files = git("archive", f"{found[-1]}^", "solisync", "migrations", "tests")
    subprocess.run(["tar", "-x", "-C", place], input=files, check=True)
    port = free_port()
    variables = environment(dsn, SOLISYNC_LISTEN=f"tcp:{port}:interface=127.0.0.1", PYTHONPATH=place)
    serving = place / "tests" / "harness" / "serve.py"
    return launch(sys.executable, "-P", serving, port=port, dsn=dsn, **variables)


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE, check=True).stdout


async def test_2000_reconnecting_streams_delay_no_request(serve, shared_dsn, figure):
    """The streams open, are cut and open again; /health answers as usual."""
    truncate(shared_dsn)
    process = await serve(shared_dsn)
    tokens = "\n".join(listeners(shared_dsn, 2_000))
    watch = Watch(process, {"health": b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"})
    watch.start()
    crowd = [sys.executable, "-m", "tests.fire.crowd", str(process.port), "2"]
    done = await deferToThread(subprocess.run, crowd, input=tokens, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    await deferToThread(watch.end)
    assert done.returncode == 0
    figure(f"2,000 streams opened in {' and '.join(done.stdout.split())} s: {watch}")
    assert watch.p99("health") < 0.5
    assert process.stop() == 0
