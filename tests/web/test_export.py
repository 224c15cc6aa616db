"""The export of all that is stored about a player (docs/protocol.md "The player")."""

import json
import re
import socket
import time
from base64 import b64encode
from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import msgspec
import pytest
import pytest_twisted
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from solisync.commands.smoke import PIXEL
from solisync.players.export_document import export_document
from solisync.postgres.opening import open_connection
from solisync.postgres.transaction import Statements
from solisync.rules.analytics import AnalyticsEvent, Batch
from solisync.rules.export import filename
from solisync.storage.players import export
from tests.harness.concurrency import until
from tests.harness.footprint import COLUMNS, play, restrict
from tests.harness.payloads import replay
from tests.harness.postgres import truncate
from tests.harness.service import start

MIB = 2**20
FILL = """
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, recorded_at)
    SELECT gen_random_uuid(), %s, now() - make_interval(secs => n), body, octet_length(body), 'Zen', 'DrawOne', '1',
        '1', '2026-01-01'
    FROM generate_series(1, %s) AS n, LATERAL (SELECT '{"n": ' || n || ', "x": "' || repeat('x', %s) || '"}' AS body)
"""
FILL_EVENTS = """
    INSERT INTO analytics_events (id, session_id, name_id, event_type, payload, client_time, received_at)
    SELECT gen_random_uuid(), 's', (SELECT id FROM analytics_names WHERE name = %s), 'filled', '{ }', now(),
        now() - interval '1 day' FROM generate_series(1, %s)
"""

# The parts that the document leaves out, with the reasons.
SECRET = {
    ("users", "password_hash"),
    ("users", "password_cut"),
    ("refresh_tokens", "jti"),
    ("refresh_tokens", "spent_jti"),
    ("refresh_tokens", "retry_digest"),
    ("recovery_codes", "digest"),
}
OF_GUESTS_ALONE = {("users", f"guest{what}") for what in ("", "_used_at", "_returned")}
KEYS_OF_GUESTS = {"guest_keys"}
WORK_LEFT = {"large_accounts"}
TIMES_IN_THE_HISTORY = {("joined_guests", "joined_at")}
LINKS = {"reset_tokens"}  # operators make them; they are valid for an hour
ADMINS = {"admins", "admin_codes", "admin_sessions"}  # admins aren't players
SEEN_BY_ADMINS = {"review_seen"}
LIMITS = {"rate_limits", "recent_searches"}
KNOWN_STATES = {"known_states"}
MADE_OF_THE_BODY = {"replay_checks", "verdicts", "board_evidence"}  # also public, as the replay's verdict and on boards
NAMELESS = {"public_replays", "public_replays_begin", "daily_numbers", "account_deletions", "last_backup"}
ROW_NUMBERS = {("analytics_names", "id"), ("analytics_events", "name_id"), ("account_history", "id")}
HASH_OF_THE_IMAGE = {("avatars", "etag")}
DIGEST_OF_THE_BODY = {("replays", "game_digest")}
LENGTH_OF_THE_BODY = {("replays", "size")}
WHO_ACTED = {("admin_acts", column) for column in ("id", "actor_kind", "actor", "target", "client", "request_id")}
NUMBERS_OF_ACTS = {("admin_notes", "act_id")}
SHOWN_AS = {("replays", "unlisted"): lambda unlisted: '"listed":false'}
ROWS = {  # how to find the player %(id)s in tables without a column user_id
    "users": "id = %(id)s",
    "admin_acts": "id IN (SELECT act_id FROM admin_notes WHERE user_id = %(id)s)",
    "analytics_names": "name IN (%(id)s, %(name)s)",
    "analytics_events": "name_id IN (SELECT id FROM analytics_names WHERE name IN (%(id)s, %(name)s))",
}


async def exported(reactor, server, player):
    """Return the document of a player as `solisync users export` gets it, suspended or not."""
    with closing(await open_connection(reactor, server.dsn)) as connection:
        statements = Statements(connection)

        async def read(work, *arguments):
            return await work(statements, *arguments)

        parts = export_document(read, await export.begin(statements, player))
        return b"".join([part async for part in parts]).decode()


async def download(server, client, method="GET"):
    return await server.ask(method, "/api/me/export", bearer=client.tokens.access_token)


def again(server):
    """Reset the rate limit, so that every player may export again."""
    server.sql("DELETE FROM rate_limits")


async def report(client, name, event_type="won", **fields):
    event = AnalyticsEvent(id=str(uuid4()), event_type=event_type, client_time=datetime.now(UTC), **fields)
    await client.report(Batch(session_id="s", user_id=name, events=[event]))
    return event.id


async def test_document_has_all_parts(server):
    """Parts come in this order, each as other routes show it. No cache may keep the download."""
    client = server.client()
    player = await play(server.dsn, client, "ann")
    answer = await download(server, client)
    assert answer.headers["content-disposition"] == 'attachment; filename="solisync-ann.json"'
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == ("application/json", "no-store")
    document = answer.json
    parts = ["exported_at", "account", "avatar", "progress", "leaderboard", "sessions", "recovery_codes", "moderation"]
    assert list(document) == [*parts, "replays", "analytics", "history", "games"]
    assert document["moderation"] == {"suspension": None, "locked_since": None, "access_cutoff": None, "acts": []}
    assert abs(datetime.fromisoformat(document["exported_at"]) - datetime.now(UTC)) < timedelta(minutes=1)
    assert document["account"] == document["account"] | {"id": player, "username": "ann"}
    assert document["account"]["avatar_url"] == f"/avatars/{player}.png"
    assert document["avatar"] == {"content_type": "image/png", "base64": b64encode(PIXEL).decode()}
    assert document["leaderboard"] == document["leaderboard"] | {"display_name": "ann", "visible": True}
    (session,) = await client.sessions()
    (shown,) = document["sessions"]
    assert shown["id"] == session.id
    assert list(shown)[:5] == ["id", "begun_at", "used_at", "expires_at", "user_agent"]
    (own,) = (await client.own_replays()).replays
    (stored,) = document["replays"]
    assert list(stored) == ["id", "received_at", "listed", "held", "body"]
    assert (stored["id"], stored["listed"], stored["body"]["player"]) == (own.id, False, "ann")
    assert [event["name"] for event in document["analytics"]] in ([player] * 3 + ["ann"], ["ann"] + [player] * 3)


async def test_expired_sessions_are_left_out(server):
    """The list of sessions leaves them out too, even those that expired before the first possible beginning."""
    client = await server.player("ann")
    record = "INSERT INTO refresh_tokens (jti, user_id, expires_at) SELECT gen_random_uuid(), id, %s FROM users"
    for expired in ("0001-01-15T00:00:00Z", datetime.now(UTC) - timedelta(seconds=1)):
        server.sql(record, (expired,))
    answer = await download(server, client)
    (session,) = await client.sessions()
    assert (answer.status, [each["id"] for each in answer.json["sessions"]]) == (200, [session.id])


async def test_document_of_a_new_player_is_mostly_empty(server):
    """Missing parts are null or empty."""
    client = await server.player("ann")
    document = (await download(server, client)).json
    empty = {"avatar": None, "progress": None, "leaderboard": None, "replays": [], "games": []}
    assert {name: document[name] for name in empty} == empty


def spelled(value):
    """Return the spellings that a value may have in the document."""
    if isinstance(value, memoryview):
        return [b64encode(value).decode()]
    if isinstance(value, datetime):
        return [msgspec.json.encode(value).decode()]
    return [str(value), msgspec.json.encode(str(value))[1:-1].decode()]


async def test_document_has_every_column_of_every_table(server, reactor):
    """docs/protocol.md names the exceptions. No value of another player is in the document."""
    client, other = server.client(), server.client()
    player, neighbour = await play(server.dsn, client, "zz_exported_zz"), await play(server.dsn, other, "zz_other_zz")
    await client.refresh()
    server.sql("UPDATE refresh_tokens SET user_agent = 'A \"game\" é'")
    for each in (player, neighbour):
        restrict(server.dsn, each)
    text = await exported(reactor, server, player)
    found = 0
    for table, column in server.sql(COLUMNS):
        if (
            table in ADMINS | SEEN_BY_ADMINS | LIMITS | KNOWN_STATES | MADE_OF_THE_BODY | NAMELESS | LINKS
            or table in KEYS_OF_GUESTS | WORK_LEFT
            or (table, column) in SECRET | ROW_NUMBERS | HASH_OF_THE_IMAGE | DIGEST_OF_THE_BODY | LENGTH_OF_THE_BODY
            or (table, column) in OF_GUESTS_ALONE | TIMES_IN_THE_HISTORY
            or (table, column) in WHO_ACTED | NUMBERS_OF_ACTS
        ):
            continue
        rows = f'SELECT "{column}" FROM "{table}" WHERE {ROWS.get(table, "user_id = %(id)s")}'
        values = [value for (value,) in server.sql(rows, {"id": player, "name": "zz_exported_zz"})]
        values = [each for value in values for each in (value if isinstance(value, list) else [value])]
        assert None not in values, f"play() leaves nothing in {table}.{column}"
        assert values, f"no row of the player is found in {table}"
        for value in values:
            show = SHOWN_AS.get((table, column))
            if show is not None:
                assert show(value) in text, (table, column)
            elif isinstance(value, bool | int):
                assert re.search(rf"[:\[,]{json.dumps(value)}[,}}\]]", text), (table, column, value)
            else:
                assert any(each in text for each in spelled(value)), (table, column, value)
            found += 1
    assert found > 40
    for stranger in (neighbour, "zz_other_zz"):
        assert stranger not in text
    for (secret,) in server.sql("SELECT password_hash FROM users UNION SELECT jti::text FROM refresh_tokens"):
        assert secret not in text


async def test_bodies_are_exported_byte_for_byte(server):
    """Numbers, order, doubled keys, white space, escapes and characters beyond ASCII keep their spelling."""
    client = await server.player("ann")
    odd = [b'"a": 1.50e+1, "a": -0.0', b'"\\ud800": "\\u0000"', '"é😀": "😀"'.encode(), b'"t":\t' + b"9" * 400]
    bodies = [replay().replace(b'"seed"', each + b',\r\n"seed"') + b" \n" for each in odd]
    ids = [await client.upload_replay(body) for body in bodies]
    event = await report(client, "ann", payload=msgspec.Raw('{"z" : 1.50, "é":"\\u00e9" }'.encode()))
    content = await client.export()
    assert [each["id"] for each in json.loads(content)["replays"]] == ids
    for replay_id, body in zip(ids, bodies, strict=True):
        head = rb'"id":"%b","received_at":"[^"]+","listed":true,"held":false,' % replay_id.encode()
        record = head + rb'"body":%b}' % re.escape(body)
        assert re.search(record, content)
    assert [each["id"] for each in json.loads(content)["analytics"]] == [event]
    assert '"payload":{"z" : 1.50, "é":"\\u00e9" }}'.encode() in content
    ((payload,),) = server.sql("SELECT payload FROM sync_states") or (("null",),)
    assert b'"progress":' + payload.encode() + b"," in content


@pytest.mark.parametrize(("count", "size"), [(3 * export.PAGE_REPLAYS, 10), (21, export.PAGE_BYTES // 7), (2, 900_000)])
async def test_long_lists_are_exported_whole_and_in_order(server, count, size):
    """The player has many replays, large replays, and many events under two names."""
    client = await server.player("ann")
    me = await client.me()
    server.sql(FILL, (me.id, count, size))
    for name in ("ann", me.id):
        await report(client, name)
        server.sql(FILL_EVENTS, (name, 2 * export.PAGE_EVENTS))
    document = (await download(server, client)).json
    stored = [each for (each,) in server.sql("SELECT id::text FROM replays ORDER BY received_at, id")]
    assert [each["id"] for each in document["replays"]] == stored
    events = [each for (each,) in server.sql("SELECT id::text FROM analytics_events")]
    assert sorted(each["id"] for each in document["analytics"]) == sorted(events)
    assert len({each["id"] for each in document["analytics"]}) == len(events) == 4 * export.PAGE_EVENTS + 2


async def test_head_returns_the_headers_of_get(server):
    """The date and the request id differ."""
    client = await server.player("ann")
    get, head = await download(server, client), await download(server, client, "HEAD")
    own = {"date": "", "x-request-id": ""}
    assert (head.status, head.headers | own, head.content) == (200, get.headers | own, b"")


async def test_export_needs_the_token_of_an_existing_player(server):
    """No token returns 401, a deleted player 404."""
    client = await server.player("ann")
    tokens = client.tokens
    await client.delete_account()
    client.tokens = tokens
    for method in ("GET", "HEAD"):
        assert (await server.ask(method, "/api/me/export")).status == 401
        answer = await download(server, client, method)
        assert (answer.status, answer.headers["error-code"]) == (404, "user_not_found")


@pytest.mark.parametrize("ahead", [True, False])
async def test_wrong_clock_of_a_node_hides_no_record(reactor, shared_dsn, ahead):
    """The export includes records with times later than its own."""
    truncate(shared_dsn)
    offset = timedelta(minutes=10 if ahead else -10)
    running = await start(reactor, shared_dsn, now=lambda: datetime.now(UTC) + offset)
    try:
        client = await running.player("ann")
        replay_id, event = await client.upload_replay(replay()), await report(client, "ann")
        document = json.loads(await client.export())
        assert [each["id"] for each in document["replays"]] == [replay_id]
        assert [each["id"] for each in document["analytics"]] == [event]
    finally:
        await running.service.stopService()


async def test_http_1_0_gets_the_document_without_chunks(server, reactor):
    """The document ends when the connection closes."""
    client = await server.player("ann")
    await client.upload_replay(replay())
    reader = Reader(server, client, version="1.0")
    await until(reactor, reader.read_some)
    top, _, body = reader.received.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in top
    assert json.loads(body)["replays"]


class Reader:
    """An export over a separate socket, read only when the test wants it."""

    def __init__(self, server, client, version="1.1"):
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        self._socket.connect(("127.0.0.1", server.port))
        self._socket.setblocking(False)
        token = client.tokens.access_token
        lines = [f"GET /api/me/export HTTP/{version}", "Host: a", "Connection: close", f"Authorization: Bearer {token}"]
        self._socket.sendall("\r\n".join([*lines, "\r\n"]).encode())
        self.received = bytearray()

    def read_some(self, most=2**20):
        """Read the bytes that have come, up to a limit; return True at the end."""
        enough = len(self.received) + most
        while len(self.received) < enough:
            try:
                data = self._socket.recv(65_536)
            except BlockingIOError:
                return False
            if not data:
                return True
            self.received += data
        return False

    def close(self):
        self._socket.close()

    @property
    def document(self):
        """Return the body from its chunks, the last of which must be there."""
        rest, body = self.received.partition(b"\r\n\r\n")[2], b""
        while True:
            size, _, rest = rest.partition(b"\r\n")
            if size == b"0":
                assert rest == b"\r\n"
                return body
            body += rest[: int(size, 16)]
            rest = rest[int(size, 16) + 2 :]


@pytest.fixture
def small(reactor, shared_dsn):
    """A service with two connections to the database."""
    truncate(shared_dsn)
    settings = {"SOLISYNC_DATABASE_CONNECTIONS": "2"}
    running = pytest_twisted.blockon(Deferred.fromCoroutine(start(reactor, shared_dsn, settings=settings)))
    yield running
    pytest_twisted.blockon(running.service.stopService())


def pool(running):
    return running.service.parts.database.pool


async def collector(running, name="ann"):
    """Return a player with 20 MiB of replays, more than the buffers between service and client hold."""
    client = await running.player(name)
    running.sql(FILL, ((await client.me()).id, 40, 500_000))
    return client


async def test_unread_exports_hold_no_database_connection(small, reactor):
    """The service has two connections. Eight clients read nothing, and other requests don't wait."""
    readers = []
    for number in range(8):
        readers.append(Reader(small, await collector(small, f"player_{number}")))
    stalled = small.service.site.connections
    await until(reactor, lambda: sum(each.sender.full for each in stalled.open) == 8)
    await until(reactor, lambda: pool(small).used == 0)
    client = await small.player("ann")
    for _ in range(20):
        assert (await client.me()).username == "ann"
        assert pool(small).waiting == 0
    await until(reactor, lambda: pool(small).used == 0)
    assert stalled.unread.used < 8 * 1.4 * MIB
    for reader in readers:
        reader.close()
    await until(reactor, lambda: not [each for each in stalled.open if each.sender.full])


async def test_export_stops_when_its_client_hangs_up(small, reactor, no_lost_failures):
    """Whenever the client leaves, the service reads no more and releases every connection."""
    client = await collector(small)
    open_connections = small.service.site.connections.open
    for most in (0, 200_000, 3_000_000):
        again(small)
        reader = Reader(small, client)
        if most:
            await until(reactor, lambda reader=reader, most=most: reader.read_some() or len(reader.received) > most)
        reader.close()
        await until(reactor, lambda: not any(each.request for each in open_connections))
        await until(reactor, lambda: pool(small).used == 0)
    again(small)
    assert len(json.loads(await client.export())["replays"]) == 40


async def test_each_record_is_whole_while_replays_change(small, reactor):
    """Replays that exist during the whole export are in it, while others are added, deleted and hidden."""
    client = await collector(small)
    first = dict(small.sql("SELECT id::text, body FROM replays ORDER BY received_at"))
    reader, gone, come = Reader(small, client), set(), []
    ids = list(first)
    while not reader.read_some(200_000):
        await deferLater(reactor, 0)
        if len(reader.received) // 400_000 > len(come):
            come.append(await client.upload_replay(replay(moves=len(come))))
            for replay_id in (ids.pop(), ids.pop(len(ids) // 2)) if len(ids) > 2 else ():
                await client.delete_replay(replay_id)
                gone.add(replay_id)
            await client.set_listed(ids[0], len(come) % 2 == 0)
    document = json.loads(reader.document)
    exported = {each["id"]: each["body"] for each in document["replays"]}
    assert len(come) > 10
    assert set(first) - gone <= set(exported) <= set(first)
    assert set(exported) & gone < gone  # some were deleted before they were read
    for replay_id, body in exported.items():
        assert body == json.loads(first[replay_id])


async def test_deletion_during_an_export_ends_the_list(small, reactor):
    """Unread replays are missing; the document is still valid JSON."""
    client = await collector(small)
    await report(client, "ann")
    reader = Reader(small, client)
    await until(reactor, lambda: reader.read_some() or len(reader.received) > 1_000_000)
    await client.delete_account()
    await until(reactor, reader.read_some)
    document = json.loads(reader.document)
    assert 0 < len(document["replays"]) < 40
    assert document["analytics"] == []


async def test_stopping_service_cuts_off_a_long_export(reactor, shared_dsn):
    """The service waits for an export as long as for any request. The last chunk is then missing."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_STOP_SECONDS": "0.3"})
    client = await collector(running)
    reader = Reader(running, client)
    await until(reactor, lambda: reader.read_some() or len(reader.received) > 1_000_000)
    began = time.monotonic()
    await running.service.stopService()
    assert time.monotonic() - began < 3

    def ended():
        try:
            return reader.read_some()
        except ConnectionResetError:
            return True

    await until(reactor, ended)
    assert not reader.received.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(("username", "name"), [("ann", "ann"), ("A_9", "A_9"), ('a"b/é', "a_b__"), (None, "")])
def test_file_name_is_harmless(username, name):
    """A database that was altered by hand may have any username."""
    assert filename(username) == f"solisync-{name}.json"
