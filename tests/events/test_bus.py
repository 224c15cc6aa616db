"""The bus: a process notifies the others of its commits, and streams make up for lost notices."""

import json
from dataclasses import replace
from uuid import uuid4

from twisted.logger import LogLevel, capturedLogs

from solisync.errors import ConnectionLost
from solisync.events.notices import (
    MESSAGE_BYTES,
    BoardsChanged,
    ProgressStored,
    ReplayStored,
    SessionsEnded,
    VerdictStored,
    command_notices,
    decode_message,
    decode_notices,
    encode_messages,
    encode_notice,
)
from solisync.postgres import opening
from solisync.postgres.database import Database
from solisync.storage import schema
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD, PATIENCE
from tests.harness.event_streams import won
from tests.harness.postgres import run_sql
from tests.harness.service import start

PLAYER = "0b8f6f0e-6c53-4d0a-9c3e-2f1d8a7b5c41"
NOTICES = [
    ProgressStored(PLAYER, "0" * 32, None),
    ProgressStored(PLAYER, "0" * 32, PLAYER),
    VerdictStored(PLAYER, PLAYER, "verified"),
    BoardsChanged(("verified", "daily/2026-11-20")),
    BoardsChanged(),
    SessionsEnded(PLAYER),
    SessionsEnded(None),
    ReplayStored(),
]
CUT_OFF = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE (query LIKE 'LISTEN%' OR query LIKE '%pg_notify%') AND pid <> pg_backend_pid()
"""


def test_notices_are_decoded_as_they_were():
    """One message has all kinds of notices, and its number."""
    (text,) = encode_messages("a", 7, map(encode_notice, NOTICES))
    message = decode_message(text)
    assert (message.sender, message.number) == ("a", 7)
    assert [*decode_notices(message)] == NOTICES


def test_long_message_is_split_to_fit_notifications():
    """The parts have consecutive numbers."""
    texts = encode_messages("a", 1, [encode_notice(notice) for notice in NOTICES * 100])
    assert all(len(text.encode()) <= MESSAGE_BYTES for text in texts)
    messages = [decode_message(text) for text in texts]
    assert [message.number for message in messages] == [*range(1, len(texts) + 1)]
    assert sum(len([*decode_notices(message)]) for message in messages) == 800


def test_unknown_notices_and_messages_are_skipped():
    """A newer version may send notices of new kinds, and messages in a new format."""
    message = decode_message('[1,"a",1,[["future",1],["sessions",null],["progress","short","0",null,"more"],[],7]]')
    assert [*decode_notices(message)] == [SessionsEnded(None)]
    for text in ('[2,"a",1,[]]', "[]", "{}", "text", ""):
        assert decode_message(text) is None


async def test_notice_reaches_the_streams_of_another_node(nodes, listen):
    """A stream gets the event of a push on the other node, and ends with its session or its account."""
    here, there = nodes
    ann = await here.player()
    stream = await listen(there, ann)
    assert (await stream.next())[0] == "hello"
    await won(ann)
    name, data = await stream.next()
    assert (name, data["own"]) == ("progress", True)
    await ann.end_sessions()
    assert await stream.ended() == "session_ended"
    await ann.login("ann", PASSWORD)
    stream = await listen(there, ann)
    await ann.delete_account()
    assert await stream.ended() == "account_deleted"


async def test_stream_gets_progress_that_its_process_missed(server, reactor, listen):
    """A process whose connection was cut compares its streams with the database, and sends `hello` again."""
    ann = await server.player()
    stream = await listen(server, ann)
    await stream.next()
    bus = server.service.parts.bus
    await until(reactor, lambda: bus.hears)
    elsewhere = await start(reactor, server.dsn)
    try:
        other = elsewhere.client()
        await other.login("ann", PASSWORD)
        server.sql(CUT_OFF)
        await until(reactor, lambda: not bus.hears)
        await won(other)
        assert (await stream.next())[0] in ("hello", "progress")
        await until(reactor, lambda: bus.hears)
        _, data = stream.events[-1]
        answer = await server.ask("GET", "/api/sync/pull", bearer=ann.tokens.access_token)
        assert answer.headers["etag"] == f'W/"{data["revision"]}"'
    finally:
        await elsewhere.service.stopService()


async def test_streams_are_greeted_after_a_loss(server, reactor, listen):
    """No revision shows a missed verdict or change of a board, so they get `hello` with the same one."""
    ann = await server.player()
    await won(ann)
    streams = [await listen(server, ann), await listen(server, await server.player("bob"))]
    for stream in streams:
        await stream.next()
    bus = server.service.parts.bus
    await until(reactor, lambda: bus.hears)
    before = [stream.repeats for stream in streams]
    elsewhere = lambda number: encode_messages("elsewhere", number, ())  # noqa: E731
    for number in (1, 3):
        bus._hear(*elsewhere(number))
    for stream, repeats in zip(streams, before, strict=True):
        await stream.until(lambda stream=stream, repeats=repeats: stream.repeats > repeats)


async def test_lone_process_sends_no_message(server, reactor, listen, monkeypatch):
    """Its own streams get the event. The next echo's number shows a later process that there were notices."""
    ann = await server.player()
    stream = await listen(server, ann)
    await stream.next()
    bus = server.service.parts.bus
    await until(reactor, lambda: bus.hears)
    monkeypatch.setattr("solisync.events.bus.DEAF_SECONDS", 0.0)
    number = bus._number
    await won(ann)
    assert (await stream.next())[0] == "progress"
    assert bus._waiting == []
    assert bus._number > number


async def test_stopping_process_sends_waiting_notices(server, reactor, listen):
    """Other processes receive the notices of its last commits."""
    ann = await server.player()
    stream = await listen(server, ann)
    await stream.next()
    elsewhere = await start(reactor, server.dsn)
    other = elsewhere.client()
    await other.login("ann", PASSWORD)
    await until(reactor, lambda: elsewhere.service.parts.bus.hears)
    await won(other)
    assert not elsewhere.service.parts.bus.alone
    await elsewhere.service.stopService()
    assert await stream.next() == ("progress", stream.events[-1][1])


async def test_bus_that_does_not_listen_remembers_no_sending_times(server, reactor, monkeypatch):
    """Behind a pooler that shares connections, the bus sends messages but receives none."""
    identify = opening._identify
    monkeypatch.setattr(opening, "_identify", lambda *arguments: replace(identify(*arguments), pooled=True))
    running = await start(reactor, server.dsn, settings={"SOLISYNC_PREPARED_STATEMENTS": "off"})
    try:
        bus = running.service.parts.bus
        sent = bus._metrics.bus_batches.labels("sent")._value.get
        await until(reactor, lambda: bus._connection.ready)
        await won(await running.player())
        await until(reactor, lambda: sent() > 0)
        assert not bus._sent_at
    finally:
        await running.service.stopService()


async def test_faults_are_counted_and_logged_once(server, reactor):
    """Faults are a lost message, a message of another program, and a notice of another version."""
    bus = server.service.parts.bus
    await until(reactor, lambda: bus.hears)
    bus._errors._logged_at.clear()
    missed, unknown = (bus._metrics.live_faults.labels(kind)._value.get for kind in ("missed", "unknown"))
    before = missed(), unknown()
    sender = str(uuid4())
    with capturedLogs() as events:
        for message in ([1, sender, 1, []], [1, sender, 3, []], "nonsense", [1, sender, 4, [["future"]]]):
            run_sql(server.dsn, "SELECT pg_notify('solisync', %s)", (json.dumps(message),))
        await until(reactor, lambda: unknown() >= before[1] + 2)
    assert missed() == before[0] + 1
    texts = [event["text"] for event in events if event["log_level"] is LogLevel.warn and "text" in event]
    assert len(texts) == 2


async def test_gap_between_numbers_is_noticed(server, reactor, listen):
    """A message was lost, so streams without the latest revision get `hello`."""
    ann = await server.player()
    await won(ann)
    stream = await listen(server, ann)
    _, first = await stream.next()
    bus = server.service.parts.bus
    await until(reactor, lambda: bus.hears)
    run_sql(server.dsn, "SELECT pg_notify('solisync', '[1,\"other\",5,[]]')")
    server.sql("UPDATE sync_states SET payload = payload || ' '")
    run_sql(server.dsn, "SELECT pg_notify('solisync', '[1,\"other\",7,[]]')")
    name, data = await stream.next()
    assert name == "hello"
    assert data["revision"] != first["revision"]


async def test_broken_bus_delays_no_push(server, reactor, listen):
    """Notices that can't be sent within two seconds are dropped and counted. The process's own streams get them."""
    ann = await server.player()
    stream = await listen(server, ann)
    await stream.next()
    bus = server.service.parts.bus
    dropped = bus._metrics.bus_batches.labels("dropped")._value.get
    before, times = dropped(), bus._connection._times
    await until(reactor, lambda: bus.hears)
    bus._connection._times = replace(times, reconnect=2.5)
    bus._connection.drop()
    bus._connection._times = times
    await won(ann)
    assert (await stream.next())[0] == "progress"
    await until(reactor, lambda: dropped() > before)
    await until(reactor, lambda: bus.hears)


async def test_command_warns_when_it_can_not_send_notices(reactor, shared_dsn):
    """Its changes are committed all the same. It sends its notices before its database closes."""
    database = Database(reactor=reactor, size=1, statements=())
    database.open(shared_dsn)
    await database.run(schema.number)
    with capturedLogs() as logged:
        command_notices(database)(SessionsEnded(None))
        await database.close(PATIENCE)
        assert logged == []
        command_notices(database)(SessionsEnded(None))
    assert [event["log_level"].name for event in logged] == ["warn"]


async def test_failed_batch_is_dropped_after_a_reconnection(server, reactor, monkeypatch):
    """The bus has forgotten the batch by then, which isn't an error. Later batches are sent."""
    bus = server.service.parts.bus
    failures = bus._metrics.live_faults.labels("dropped")._value.get
    before = failures()

    async def send(messages, seconds):
        bus._sent_at.clear()  # as after a reconnection
        raise ConnectionLost("gone")

    await until(reactor, lambda: bus.hears)
    with monkeypatch.context() as patch:
        patch.setattr(bus._connection, "send", send)
        bus.publish(SessionsEnded(PLAYER))
        await until(reactor, lambda: failures() > before)
    await until(reactor, lambda: bus.hears)
