"""Timelines are made on request (docs/verification.md "The timeline")."""

import os
import signal
from hashlib import sha256
from unittest.mock import Mock

import pytest
from twisted.internet.defer import Deferred, gatherResults

from solisync.checking import timelines
from solisync.checking.messages import compressed_timeline
from solisync.checking.processes import TimelineProcess
from solisync.checking.timelines import Timelines
from solisync.errors import Unavailable
from solisync.klondike import ENGINE_VERSION, check, make_timeline
from solisync.web.handler_limits import WAITING
from tests.checking.uploads import encoded, endless, game, upload
from tests.harness.concurrency import until
from tests.harness.constants import PATIENCE
from tests.harness.http_requests import new_address
from tests.harness.processes import children, command_line
from tests.klondike.vectors import wins

STORE = """
    INSERT INTO verdicts
        (replay_id, status, ruleset, undos, score, moves, checked_at, engine, undo_places, timeline_digest)
    VALUES (%s, %s, %s, %s, %s, %s, now(), %s, %s::smallint[], %s)
"""


def makers():
    """Return the child processes that make timelines."""
    return {child for child in children(os.getpid()) if b"timeline_maker" in command_line(child)}


@pytest.fixture
def made(monkeypatch):
    """The timelines requested from processes from now on; the cache is empty."""
    asked = []
    make = TimelineProcess.make

    def count(process, playback):
        asked.append(playback)
        return make(process, playback)

    monkeypatch.setattr(TimelineProcess, "make", count)
    return asked


def unlike(*numbers, mode):
    """Return games whose timelines no other test here requests: the shared service may have cached those."""
    return [encoded(game(number, mode=mode)) for number in numbers]


async def settled(server, client, body):
    """Upload a replay, and store the verdict on it as a checker would; return its id and its timeline's entity tag."""
    replay_id, verdict = await upload(server, client, body), check(body)
    digest = sha256(compressed_timeline(body, verdict)).digest()
    facts = (verdict.ruleset, verdict.undos, verdict.score, verdict.moves, ENGINE_VERSION)
    server.sql(STORE, (replay_id, verdict.status.value, *facts, list(verdict.undo_places) or None, digest))
    return replay_id, f'"{digest.hex()}"'


async def ask(server, replay_id, **options):
    return await server.ask("GET", f"/api/replays/{replay_id}/timeline", **options)


async def test_timeline_is_the_engines_to_the_byte(server):
    """Games under both rulesets, with undos and without, have the entity tag of the checker."""
    client = await server.player("ann")
    games = [
        encoded(win["replay"])
        for ruleset in ("2026-05-19", "2026-05-01")
        for undo in (False, True)
        for win in wins(ruleset, undo=undo)[::5]
    ]
    for body in games:
        replay_id, etag = await settled(server, client, body)
        made = make_timeline(body, check(body))
        known = await ask(server, replay_id, headers={"If-None-Match": etag})
        assert (known.status, known.content, known.headers["etag"]) == (304, b"", etag)
        assert known.headers["cache-control"] == "public, max-age=300"
        for _ in "made", "remembered":
            answer = await ask(server, replay_id)
            assert (answer.status, answer.content) == (200, made)
            assert answer.headers["etag"] == etag


async def test_timeline_is_made_once_for_all_requests(server, made):
    """Simultaneous requests share one process, and later ones need none."""
    client = await server.player("ann")
    ids = [(await settled(server, client, body))[0] for body in unlike(0, 1, mode="TimeAttack")]
    asked = [Deferred.fromCoroutine(ask(server, replay_id)) for replay_id in ids * 5]
    assert {answer.status for answer in await gatherResults(asked)} == {200}
    assert {(await ask(server, replay_id)).status for replay_id in ids} == {200}
    assert len(made) == 2
    assert len(makers()) == 1


async def test_two_nodes_make_the_same_timeline(nodes):
    """Each node uses its own process. Bytes and tag are the same, and nothing is stored."""
    (body,) = unlike(5, mode="Challenge")
    replay_id, etag = await settled(nodes[0], await nodes[0].player("ann"), body)
    row = "SELECT xmin::text, verdicts::text FROM verdicts"
    before = nodes[0].sql(row)
    answers = await gatherResults([Deferred.fromCoroutine(ask(node, replay_id)) for node in nodes * 2])
    told = {(answer.status, answer.content, answer.headers["etag"]) for answer in answers}
    assert told == {(200, make_timeline(body, check(body)), etag)}
    assert nodes[0].sql(row) == before


async def test_too_many_simultaneous_timelines_of_an_address_return_429(reactor, server, monkeypatch):
    """The others of that address wait; other addresses and cached timelines are answered."""
    monkeypatch.setattr(timelines, "SECONDS", PATIENCE)
    client, address = await server.player("ann"), new_address()
    games = unlike(0, 2, 3, 5, mode="Challenge")
    known, *asked, others = [(await settled(server, client, body))[0] for body in games]
    assert (await ask(server, known)).status == 200
    (pid,) = makers()
    os.kill(pid, signal.SIGSTOP)
    try:
        many = asked * (WAITING // 2 + 1)
        waiting = [Deferred.fromCoroutine(ask(server, replay_id, address=address)) for replay_id in many]
        await until(reactor, lambda: any(each.called for each in waiting))
        (refused,) = [each.result for each in waiting if each.called]
        assert (await ask(server, known, address=address)).status == 200
        waiting.append(Deferred.fromCoroutine(ask(server, others)))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    answers = await gatherResults(waiting)
    assert sorted(answer.status for answer in answers) == [200] * len(many) + [429]


async def test_killed_process_fails_one_request_only(reactor, server, made):
    """The waiting request gets 503, and the next one starts another process. Cached timelines need none."""
    client = await server.player("ann")
    first, second = [(await settled(server, client, body))[0] for body in unlike(2, 3, mode="TimeAttack")]
    assert (await ask(server, first)).status == 200
    (pid,) = makers()
    os.kill(pid, signal.SIGSTOP)
    waiting = Deferred.fromCoroutine(ask(server, second))
    assert (await ask(server, first)).status == 200
    await until(reactor, lambda: len(made) == 2)
    os.kill(pid, signal.SIGKILL)
    assert (await waiting).status == 503
    assert (await ask(server, second)).status == 200
    assert makers() - {pid}


@pytest.fixture
def database(server, open_database):
    """A pool on the database of the service."""
    return open_database(size=2, statements=())


@pytest.fixture
def maker(reactor, database):
    """Return a maker of timelines with bounds of the test."""
    running = []

    def maker(**bounds):
        running.append(Timelines(database=database, reactor=reactor, metrics=Mock(), **bounds))
        return running[-1]

    yield maker
    for each in running:
        each.stop()


async def test_too_many_waiting_timelines_return_503(server, maker):
    """A request for a timeline that is being made waits for it."""
    client, timelines = await server.player("ann"), maker(waiting=1)
    first, second, third = [await settled(server, client, encoded(game(number))) for number in range(3)]
    made = [Deferred.fromCoroutine(timelines.make(*replay)) for replay in (first, second, second, first)]
    with pytest.raises(Unavailable):
        await timelines.make(*third)
    tags = [timeline.etag for timeline in await gatherResults(made)]
    assert tags == [etag for _, etag in (first, second, second, first)]


async def test_verdict_that_does_not_fit_returns_409(server):
    """A wrong timeline would be worse."""
    replay_id, _ = await settled(server, await server.player("ann"), *unlike(1, mode="Challenge"))
    server.sql("UPDATE verdicts SET score = score + 5 WHERE replay_id = %s", (replay_id,))
    answer = await ask(server, replay_id)
    assert (answer.status, answer.headers["error-code"]) == (409, "not_playable")


async def test_timeline_cache_has_a_memory_bound(server, maker):
    """The timelines unused for longest are dropped first."""
    client = await server.player("ann")
    games = [encoded(game(number)) for number in range(3)]
    first, second, third = [await settled(server, client, body) for body in games]
    timelines = maker(kept_bytes=sum(len(compressed_timeline(body, check(body))) for body in games) - 1)
    for replay in (first, second):
        await timelines.make(*replay)
    assert timelines.remembered(first[1]).etag == first[1]
    await timelines.make(*third)
    assert [timelines.remembered(etag) is not None for _, etag in (first, second, third)] == [True, False, True]


async def test_undecided_replay_returns_409_without_any_work(server, made):
    replay_id = await upload(server, await server.player("ann"), endless())
    assert (await ask(server, replay_id)).status == 409
    assert not made
