"""Streams of events: docs/live.md."""

import re

import pytest
from msgspec import convert

from solisync.client import ApiError
from solisync.rules.events import EndEvent, HelloEvent, ProgressEvent
from solisync.rules.games import SentGame
from tests.harness.constants import PASSWORD
from tests.harness.event_streams import won
from tests.harness.games import game
from tests.harness.service import start

GAME = (
    b'{"mode": "Classic", "draw_mode": "DrawOne", "final_score": 1, "time_seconds": 1, "recorded_at": "2026-01-01",'
    b' "moves": []}'
)


async def test_stream_begins_with_the_present_revision(server, listen):
    """`hello` follows `retry`. Its revision is the entity tag of pull, or null before the first push."""
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


async def test_stream_has_headers_for_caches_and_proxies(server, listen):
    """The stream is chunked, uncached and unbuffered, and the last answer of its connection."""
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


async def test_push_sends_its_revision(server, listen):
    """Each stream of the player gets an event, with `own` in the session that pushed.

    Pull has the revision as its ETag.
    """
    ann = await server.player()
    other = server.client()
    await other.login("ann", PASSWORD)
    streams = [await listen(server, client) for client in (ann, other)]
    for stream in streams:
        await stream.next()
    await won(ann)
    (own, mine), (others, theirs) = [await stream.next() for stream in streams]
    assert own == others == "progress"
    assert (mine["own"], theirs["own"]) == (True, False)
    assert mine["revision"] == theirs["revision"]
    answer = await server.ask("GET", "/api/sync/pull", bearer=ann.tokens.access_token)
    assert answer.headers["etag"] == f'W/"{mine["revision"]}"'


async def test_push_of_known_progress_sends_no_event(server, listen):
    """Two devices that push after each event stop after one push each."""
    ann = await server.player()
    other = server.client()
    await other.login("ann", PASSWORD)
    streams = [await listen(server, client) for client in (ann, other)]
    await won(ann)
    for stream in streams:
        await stream.next()
        assert (await stream.next())[0] == "progress"
    for client in (ann, other):
        await client.push((await client.pull()).merged)
    await won(ann)
    for stream in streams:
        assert (await stream.next())[0] == "progress"
    assert [len(stream.events) for stream in streams] == [3, 3]


async def test_push_sends_no_event_to_other_players(server, listen):
    ann, bob = await server.player(), await server.player("bob")
    stream = await listen(server, bob)
    await won(ann)
    await won(bob)
    assert [(await stream.next())[0] for _ in range(2)] == ["hello", "progress"]
    assert len(stream.events) == 2


async def test_stream_needs_the_token_of_a_live_session(server, listen):
    """A missing token and a token without a session are refused."""
    assert (await listen(server, "")).status == 401
    ann = await server.player()
    former = ann.tokens.access_token
    for _ in range(2):
        await ann.refresh()
    assert (await listen(server, former)).status == 401
    assert (await listen(server, ann)).status == 200


@pytest.mark.parametrize(
    "query",
    ["?board=", "?board=classic", "?board=daily/2026-13-01", "?board=daily", "?" + "&".join(["board=verified"] * 4)],
)
async def test_unknown_board_is_a_400(server, listen, query):
    """A stream may name up to three boards: leaderboard, verified and days."""
    stream = await listen(server, await server.player(), query=query)
    assert (stream.status, stream.headers["error-code"]) == (400, "bad_query")


async def test_board_events_reach_only_streams_that_name_the_board(server, listen):
    """Opting in changes each board."""
    ann = await server.player()
    named = await listen(server, ann, query="?board=leaderboard&board=daily/2026-01-01")
    silent = await listen(server, ann)
    await named.next()
    await ann.opt_in("Ann")
    boards = [await named.next() for _ in range(2)]
    assert boards == [("board", {"board": "leaderboard"}), ("board", {"board": "daily/2026-01-01"})]
    await won(ann)
    assert [(await silent.next())[0] for _ in range(2)] == ["hello", "progress"]


async def test_head_opens_no_stream(server, listen):
    """HEAD returns the headers of a stream."""
    stream = await listen(server, await server.player(), method="HEAD")
    assert stream.status == 200
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["connection"] == "close"
    await stream.until(lambda: stream.lost)
    assert len(server.service.parts.live_streams) == 0


async def test_http_1_0_stream_is_not_chunked(server, listen):
    """The stream ends with its connection."""
    ann = await server.player()
    stream = await listen(server, ann, version="1.0")
    assert "transfer-encoding" not in stream.headers
    assert (await stream.next())[0] == "hello"
    await ann.delete_account()
    assert await stream.ended() == "account_deleted"


async def test_eleventh_stream_ends_the_oldest(server, listen):
    """A player has at most ten streams. The oldest ends with the reason `superseded`."""
    ann = await server.player()
    streams = [await listen(server, ann) for _ in range(11)]
    assert await streams[0].ended() == "superseded"
    assert streams[0].whole
    assert len(streams[0].retries) == 2
    await won(ann)
    for stream in streams[1:]:
        await stream.next()
        assert (await stream.next())[0] == "progress"


ENDINGS = {
    "logout": lambda ann: ann.logout(),
    "this session": lambda ann: ann.end_sessions(),
    "password": lambda ann: ann.change_password(PASSWORD, "another password"),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_stream_ends_with_its_session(server, listen, ending):
    ann = await server.player()
    stream = await listen(server, ann)
    await stream.next()
    await ENDINGS[ending](ann)
    assert await stream.ended() == "session_ended"
    assert stream.whole


async def test_end_of_a_session_keeps_the_streams_of_others(server, listen):
    ann, other = await server.player(), server.client()
    await other.login("ann", PASSWORD)
    first, second = await listen(server, ann), await listen(server, other)
    for stream in (first, second):
        await stream.next()
    await ann.logout()
    assert await first.ended() == "session_ended"
    await other.count_games(convert(game(), SentGame))
    assert (await second.next())[0] == "progress"


async def test_refresh_keeps_the_stream(server, listen):
    """The session continues under another token, and so does the stream."""
    ann = await server.player()
    stream = await listen(server, ann)
    await ann.refresh()
    other = server.client()
    await other.login("ann", PASSWORD)  # a login checks all sessions
    await won(ann)
    await stream.next()
    assert await stream.next() == ("progress", {"revision": stream.events[1][1]["revision"], "own": True})


async def test_sixty_first_opening_in_a_minute_is_refused(server, listen):
    """GET and HEAD share the limit. The query is checked before it."""
    ann = await server.player()
    token = ann.tokens.access_token
    for _ in range(60):
        answer = await server.ask("HEAD", "/api/events", bearer=token)
        assert answer.status == 200
    stream = await listen(server, ann)
    assert stream.status == 429
    assert 1 <= int(stream.headers["retry-after"]) <= 60
    assert (await listen(server, ann, query="?board=x")).status == 400


async def test_pull_of_a_known_revision_returns_304(server):
    """ETags are compared weakly, and `*` doesn't match. After a change, pull returns 200."""
    ann = await server.player()

    async def pull(tag):
        headers = {"If-None-Match": tag} if tag else {}
        return await server.ask("GET", "/api/sync/pull", headers, bearer=ann.tokens.access_token)

    assert "etag" not in (await pull(None)).headers
    await won(ann)
    tag = (await pull(None)).headers["etag"]
    same = await pull(tag)
    assert (same.status, same.content, same.headers["etag"]) == (304, b"", tag)
    assert same.headers["cache-control"] == "no-store"
    assert (await pull(tag.removeprefix("W/"))).status == 304
    assert (await pull("*")).status == 200
    await won(ann)
    assert (await pull(tag)).status == 200


async def test_client_class_iterates_over_events(server):
    """`async for` over `Client.events` ends after the end event. An error is raised before the first event."""
    ann = await server.player()
    heard = []
    async for event in ann.events("leaderboard"):
        heard.append(event)
        if len(heard) == 1:
            await won(ann)
        elif isinstance(event, ProgressEvent):
            assert event.own
            await ann.end_sessions()
    assert [*dict.fromkeys(map(type, heard))] == [HelloEvent, ProgressEvent, EndEvent]  # `hello` may be repeated
    assert 1 <= ann.retry_seconds <= 10
    bob = await server.player("bob")
    with pytest.raises(ApiError) as caught:
        await anext(bob.events("nonsense"))
    assert caught.value.code == "bad_query"


async def test_verdict_sends_an_event(server, listen, reactor):
    """The verdict is stored by the time the player receives the event."""
    ann = await server.player()
    stream = await listen(server, ann)
    await stream.next()
    replay_id = await ann.upload_replay(GAME)
    checking = await start(reactor, server.dsn, settings={"SOLISYNC_CHECKERS": "1"})
    try:
        name, data = await stream.next()
        assert (name, data["replay_id"]) == ("verdict", replay_id)
        assert (await ann.verdict(replay_id)).status == data["status"] == "unreadable"
    finally:
        await checking.service.stopService()


async def test_join_ends_the_stream_of_the_guest_and_reports_progress_to_the_player(server, listen):
    """The guest's stream ends like a deleted account's."""
    ann, guest = await server.player(), server.client()
    await guest.guest()
    await won(guest)
    streams = [await listen(server, client) for client in (ann, guest)]
    for stream in streams:
        await stream.next()
    await ann.join(guest.tokens.refresh_token)
    name, data = await streams[0].next()
    assert (name, data["own"]) == ("progress", True)
    assert await streams[1].next() == ("end", {"reason": "account_deleted"})
