"""The streams of a process: limits, heartbeats, slow clients, and every end."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol

from solisync.events import stream_upkeep
from solisync.events.notices import BoardsChanged, ProgressStored, VerdictStored
from solisync.events.stream import EncodedEvent, hello
from solisync.rules.events import BoardEvent
from solisync.storage import streams as stored_streams
from tests.harness.concurrency import until
from tests.harness.event_streams import won
from tests.harness.http_requests import new_address
from tests.harness.postgres import truncate
from tests.harness.service import start
from tests.wire.sockets import turn


@pytest.fixture
def service(reactor, shared_dsn):
    """Start a separate service on the database that most tests share, which is empty."""
    running = []

    async def service(settings=None, **options):
        truncate(shared_dsn)
        running.append(await start(reactor, shared_dsn, settings=settings, **options))
        return running[-1]

    yield service
    for each in running:
        if each.service.running:
            pytest_twisted.blockon(each.service.stopService())


@pytest.fixture
def quick_rounds(monkeypatch):
    """Let a minute pass in two seconds."""
    monkeypatch.setattr(stream_upkeep, "TICK_SECONDS", 0.25 / 30)


def streams(server):
    return server.service.parts.live_streams


async def test_heartbeats_are_sent(server, listen, quick_rounds):
    """A comment line comes every 25 s."""
    stream = await listen(server, await server.player())
    await stream.until(lambda: stream.heartbeats >= 3)
    assert [name for name, _ in stream.events] == ["hello"]


async def test_session_that_ended_without_a_notice_is_found(server, listen, quick_rounds):
    """Every minute the process looks up all sessions and their players."""
    ann, bob = await server.player(), await server.player("bob")
    both = [await listen(server, client) for client in (ann, bob)]
    server.sql("DELETE FROM refresh_tokens WHERE user_id = (SELECT id FROM users WHERE username = 'ann')")
    assert await both[0].ended() == "session_ended"
    server.sql("DELETE FROM users WHERE username = 'bob'")
    assert await both[1].ended() == "account_deleted"


async def test_process_without_notices_compares_its_streams(server, reactor, listen, quick_rounds):
    """Every minute, while its bus receives nothing, it sends `hello` for progress that an older node has stored."""
    ann = await server.player()
    await won(ann)
    stream = await listen(server, ann)
    _, first = await stream.next()
    server.service.parts.bus._echoed = False
    server.sql("UPDATE sync_states SET payload = payload || ' '")
    name, data = await stream.next()
    assert name == "hello"
    assert data["revision"] != first["revision"]


async def test_stream_ends_with_its_token(service, listen):
    """Requests with that token are refused from then on too."""
    ahead = timedelta()
    server = await service(now=lambda: datetime.now(UTC) + ahead)
    ann = await server.player()
    stream = await listen(server, ann)
    await stream.next()
    ahead = timedelta(hours=24, seconds=2)
    assert await stream.ended() == "token_expired"


async def test_clock_steps_do_not_affect_streams(service, listen, quick_rounds):
    """A step of an hour in either direction ends no stream, and delays no event or heartbeat."""
    ahead = timedelta()
    server = await service(now=lambda: datetime.now(UTC) + ahead)
    ann = await server.player()
    stream = await listen(server, ann)
    await stream.next()
    for hours in (1, -1):
        ahead = timedelta(hours=hours)
        await won(ann)
        assert (await stream.next())[0] == "progress"
        heartbeats = stream.heartbeats
        await stream.until(lambda heartbeats=heartbeats: stream.heartbeats > heartbeats)


async def test_stopping_service_ends_streams_first(service, listen):
    """Clients get a time to reconnect. The service doesn't wait for a client that doesn't read."""
    server = await service()
    ann = await server.player()
    open_ones = [await listen(server, ann) for _ in range(3)]
    frozen = open_ones.pop()
    frozen.transport.pauseProducing()
    stopping = server.service.stopService()
    for stream in open_ones:
        assert await stream.ended() == "stopping"
        assert 1_000 <= stream.retries[-1] <= 10_000
        assert stream.whole
    await stopping
    frozen.transport.resumeProducing()


async def test_address_has_a_tenth_of_the_streams(service, listen):
    """The setting limits all streams together. A refused client retries after 5 to 30 s."""
    server = await service({"SOLISYNC_STREAMS": "10"})
    ann = await server.player()
    address = new_address()
    assert (await listen(server, ann, address=address)).status == 200
    second = await listen(server, ann, address=address)
    assert (second.status, second.headers["error-code"]) == (503, "unavailable")
    assert 5 <= int(second.headers["retry-after"]) <= 30
    others = [await listen(server, ann) for _ in range(9)]
    assert {stream.status for stream in others} == {200}
    assert (await listen(server, ann)).status == 503
    others[0].transport.abortConnection()
    await until(others[0].transport.reactor, lambda: len(streams(server)) == 9)
    assert (await listen(server, ann)).status == 200


async def test_stream_over_the_limit_is_refused_for_good_without_an_account(server, monkeypatch):
    """A 503, after which clients try again, is only for players who could have a stream."""
    ann = await server.player()
    token = ann.tokens.access_token
    monkeypatch.setattr(streams(server), "most", 0)
    for then, refused in (
        (lambda: None, (503, "unavailable")),
        (ann.logout, (401, "unauthorized")),
        (lambda: server.sql("DELETE FROM users"), (404, "user_not_found")),
    ):
        await maybeDeferred(then)
        answer = await server.ask("GET", "/api/events", bearer=token)
        assert (answer.status, answer.headers["error-code"]) == refused


async def test_late_notice_does_not_leave_a_stream_with_an_old_revision(server, listen, monkeypatch):
    """A notice of an older push comes while the stream reads the revision. The stream gets `hello` with the newest."""
    ann = await server.player()
    player = (await ann.me()).id
    await won(ann)
    read = stored_streams.start

    async def start_beside_a_notice(*arguments):
        start = await read(*arguments)
        streams(server).hear(ProgressStored(player, "0" * 32, None))
        return start

    monkeypatch.setattr(stored_streams, "start", start_beside_a_notice)
    stream = await listen(server, ann)
    answer = await server.ask("GET", "/api/sync/pull", bearer=ann.tokens.access_token)
    newest = answer.headers["etag"].removeprefix('W/"').removesuffix('"')
    await stream.until(lambda: stream.events and stream.events[-1][1]["revision"] == newest)
    assert {name for name, _ in stream.events} == {"hello"}


async def test_client_that_leaves_while_its_stream_opens_keeps_no_place(service, reactor, monkeypatch):
    """The only place of its address is free when the statement has ended."""
    server = await service({"SOLISYNC_STREAMS": "10"})
    ann, address = await server.player(), new_address()
    start, asked, may_start, started = stored_streams.start, Deferred(), Deferred(), Deferred()

    async def slow_start(statements, *session):
        found = await start(statements, *session)
        asked.callback(None)
        await may_start
        started.callback(None)
        return found

    may_start.cancel = lambda: None  # a statement runs to its end
    monkeypatch.setattr(stored_streams, "start", slow_start)
    client = await connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", server.port), Protocol())
    headers = f"X-Forwarded-For: {address}\r\nAuthorization: Bearer {ann.tokens.access_token}"
    client.transport.write(f"GET /api/events HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n".encode())
    await asked
    connections = server.service.site.connections.open
    (connection,) = [each for each in connections if each.request is not None]
    client.transport.abortConnection()
    await until(reactor, lambda: connection not in connections)
    may_start.callback(None)
    await started
    await turn()
    opening = streams(server)
    opening.forget(opening.reserve(player="ann", expiry=1, address=address, boards=()))


async def test_streams_can_be_switched_off(service):
    """The route doesn't exist then. Pull has its entity tag all the same."""
    server = await service({"SOLISYNC_STREAMS": "0"})
    ann = await server.player()
    answer = await server.ask("GET", "/api/events", bearer=ann.tokens.access_token)
    assert (answer.status, answer.headers["error-code"]) == (404, "not_found")
    await won(ann)
    assert "etag" in (await server.ask("GET", "/api/sync/pull", bearer=ann.tokens.access_token)).headers


async def frozen_stream(server, reactor, listen, query="?board=leaderboard"):
    """Return the stream of a client that has stopped reading and whose connection is full, and the player's id."""
    ann = await server.player()
    player = (await ann.me()).id
    stream = await listen(server, ann, query=query, small=True)
    await stream.next()
    stream.transport.pauseProducing()
    (ours,) = streams(server)._of_player[player]

    def full():
        for _ in range(100):
            streams(server).hear(ProgressStored(player, uuid4().hex, None))
        return ours._outlet.full and ours._waiting

    await until(reactor, full)
    return stream, player


async def test_frozen_client_has_few_waiting_events(server, reactor, listen):
    """The newest progress and one event of each board wait for it; it gets these when it reads again."""
    stream, player = await frozen_stream(server, reactor, listen)
    (ours,) = streams(server)._of_player[player]
    for number in range(1_000):
        streams(server).hear(ProgressStored(player, f"{number:032}", None))
        streams(server)._boards._tell(ours, EncodedEvent(BoardEvent("leaderboard")))
    assert len(ours._waiting) == 2
    streams(server).hear(VerdictStored(player, player, "verified"))
    stream.transport.resumeProducing()
    await stream.until(lambda: stream.events[-1][0] == "verdict")
    last = dict(stream.events)
    assert last["progress"]["revision"] == f"{999:032}"
    assert last["board"] == {"board": "leaderboard"}


async def test_progress_does_not_replace_a_waiting_hello(server, reactor, listen):
    """The client learns that it may have missed other events."""
    stream, player = await frozen_stream(server, reactor, listen)
    (ours,) = streams(server)._of_player[player]
    streams(server)._tell(ours, hello(datetime.now(UTC), None))
    newest = uuid4().hex
    streams(server).hear(ProgressStored(player, newest, None))
    stream.transport.resumeProducing()
    await stream.until(lambda: stream.events[-1] == ("progress", {"revision": newest, "own": False}))
    assert "hello" in dict(stream.events[1:])


async def test_client_that_reads_byte_by_byte_has_few_waiting_events(server, reactor, listen):
    """At most the newest event of a kind waits, and the client reads whole events."""
    stream, player = await frozen_stream(server, reactor, listen)
    (ours,) = streams(server)._of_player[player]
    sent = ""
    for _ in range(500):
        sent = uuid4().hex
        streams(server).hear(ProgressStored(player, sent, None))
        assert len(ours._waiting) <= 2
        with suppress(BlockingIOError):
            stream.dataReceived(stream.transport.socket.recv(1))
        await turn()
    stream.transport.resumeProducing()
    await stream.until(lambda: stream.events[-1] == ("progress", {"revision": sent, "own": False}))
    assert ours.open


async def test_stream_of_a_client_that_misses_too_much_ends(server, reactor, listen):
    """Up to 20 verdicts wait. With more, the stream ends as `slow` when the client reads again."""
    stream, player = await frozen_stream(server, reactor, listen)
    for _ in range(21):
        streams(server).hear(VerdictStored(player, str(uuid4()), "verified"))
    stream.transport.resumeProducing()
    assert await stream.ended() == "slow"


async def test_board_event_is_sent_once_a_second(server, reactor, listen):
    """A board may change more often; the last change is sent too."""
    ann = await server.player()
    stream = await listen(server, ann, query="?board=verified")
    await stream.next()
    began = reactor.seconds()
    for changes in (1, 100):  # the first may wait for a second that began before this test
        for _ in range(changes):
            streams(server).hear(BoardsChanged(("verified",)))
        assert (await stream.next())[0] == "board"
    assert reactor.seconds() - began >= 1
    assert len(stream.events) == 3


async def test_suspension_ends_the_streams_of_the_player(server, listen, administrate):
    """The reason is `suspended`."""
    stream = await listen(server, await server.player())
    await stream.next()
    await administrate("users", "suspend", "ann")
    assert await stream.ended() == "suspended"
