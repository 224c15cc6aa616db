"""Streams of events: docs/live.md."""

import re

import pytest
from msgspec.structs import replace

from tests.harness.constants import PASSWORD
from tests.harness.event_streams import connect


@pytest.fixture
def listen(reactor):
    """Open a stream for a client of the player's; all are closed at the end of the test."""
    opened = []

    async def listen(server, client, **options):
        token = client if isinstance(client, str) else client.tokens.access_token
        stream = await connect(reactor, server.port, token, **options)
        opened.append(stream)
        return stream

    yield listen
    for stream in opened:
        stream.transport.abortConnection()


async def won(client, games=1):
    """Push so many wins more."""
    mine = (await client.pull()).merged
    stats = replace(mine.stats, games_won=mine.stats.games_won + games, games_played=mine.stats.games_played + games)
    return await client.push(replace(mine, stats=stats))


async def test_a_stream_begins_with_the_present_revision(server, listen):
    """`hello` comes first, after `retry`; its revision is the entity tag of pull, null before the first push."""
    ann = await server.player()
    stream = await listen(server, ann)
    name, data = await stream.next()
    assert (name, data["revision"]) == ("hello", None)
    assert data["server_time"].endswith("Z")
    (retry,) = stream.retries
    assert 1_000 <= retry <= 10_000
    await won(ann)
    name, data = await (await listen(server, ann)).next()
    assert name == "hello"
    assert re.fullmatch("[0-9a-f]{32}", data["revision"])


async def test_the_head_of_a_stream(server, listen):
    """It is chunked, kept by nobody, buffered by no proxy, and the last answer of its connection."""
    stream = await listen(server, await server.player(), headers=["Accept-Encoding: gzip"])
    assert stream.status == 200
    wanted = {
        "content-type": "text/event-stream; charset=utf-8",
        "transfer-encoding": "chunked",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
        "connection": "close",
    }
    assert {name: stream.headers.get(name) for name in wanted} == wanted
    assert not {"content-encoding", "content-length"} & stream.headers.keys()


async def test_password_of_nobody(server, listen):
    assert (await listen(server, None)).status == 401
    assert PASSWORD
