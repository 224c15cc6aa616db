"""Verdicts on uploads in the background (docs/verification.md "How replays get checked")."""

import errno
import os
import signal
import sys
import time

import msgspec
import pytest
from twisted.internet.task import deferLater

from solisync.checking import processes, queue_worker
from solisync.errors import DatabaseError
from solisync.klondike import check, make_timeline, prove
from solisync.storage.replays import checks
from tests.checking.uploads import checked, checkers, encoded, endless, game, insert, refuted, upload, verdict
from tests.harness.concurrency import until
from tests.harness.constants import SECRET
from tests.harness.entry_points import CHECKER
from tests.harness.payloads import REPLAY_HEADER
from tests.harness.players import players
from tests.harness.processes import PROC, alive, descriptors

UNREADABLE = encoded({**REPLAY_HEADER, "mode": "Zen"})


def claims(server):
    return server.sql("SELECT search, attempts, claimed_until IS NOT NULL FROM replay_checks ORDER BY search")


async def freeze(reactor, server, player):
    """Stop the checker while it works; return its process id."""
    await checked(reactor, server, await upload(server, player, UNREADABLE))
    (pid,) = checkers(os.getpid())
    os.kill(pid, signal.SIGSTOP)
    return pid


async def test_every_kind_of_replay_gets_its_verdict(checking, reactor):
    """The verdict is the engine's, with a search or without, and has the time of the check."""
    server = await checking()
    ann = await server.player()
    bodies = [encoded(game()), encoded(game(undo=True)), encoded(refuted()), UNREADABLE]
    ids = [await upload(server, ann, body) for body in bodies]
    await checked(reactor, server, *ids)
    found = [await verdict(server, replay_id) for replay_id in ids]
    assert [each["status"] for each in found] == ["verified", "verified", "refuted", "unreadable"]
    for body, each in zip(bodies, found, strict=True):
        right = check(body)
        assert each.pop("checked_at").endswith("Z")
        assert each == {
            name: getattr(right, name) for name in ("status", "ruleset", "undos", "score", "moves", "reason")
        }
    assert [each["undos"] for each in found][:2] == [0, check(bodies[1]).undos]
    assert server.sql("SELECT count(*) FROM replay_checks") == [(0,)]


async def test_checker_stores_evidence_with_the_verdict(checking, reactor):
    """A refuted replay has what its moves prove, also one that a node of 1.0.0 has checked; a verified one has none."""
    server = await checking()
    ann = await server.player()
    ids = [await upload(server, ann, body) for body in (refuted(), game(1))]
    await checked(reactor, server, *ids)
    stored = "SELECT proved FROM verdicts WHERE replay_id = %s"
    proved = msgspec.json.encode(prove(encoded(refuted()))).decode()
    assert [server.sql(stored, (each,)) for each in ids] == [[(proved,)], [(None,)]]
    server.sql("UPDATE verdicts SET proved = NULL, engine = 2")
    await until(reactor, lambda: server.sql(stored, (ids[0],)) == [(proved,)])


async def test_checker_stores_what_playback_needs(checking, reactor):
    """The timeline is the engine's, to the byte."""
    server = await checking()
    body = encoded(game(undo=True))
    replay_id = await upload(server, await server.player(), body)
    await checked(reactor, server, replay_id)
    answer = await server.ask("GET", f"/api/replays/{replay_id}/timeline")
    assert (answer.status, answer.content) == (200, make_timeline(body, check(body)))


async def test_list_of_recent_replays_shows_a_verdict_immediately(checking, reactor):
    """The cache of the list lasts a second, but a stored verdict ends it."""
    server = await checking(checkers=0)
    ann = await server.player()
    replay_id = await upload(server, ann, game())
    listed = (await server.ask("GET", "/api/replays/recent")).json
    assert [(line["id"], line["verdict"]) for line in listed] == [(replay_id, "pending")]
    other = await checking()
    assert await verdict(other, replay_id) is not None
    await checked(reactor, other, replay_id)
    listed = (await other.ask("GET", "/api/replays/recent")).json
    assert [(line["id"], line["verdict"]) for line in listed] == [(replay_id, "verified")]


async def test_literal_check_does_not_wait_for_a_search(checking, reactor, figure):
    """While the only checker runs a search of 5 s, an upload is checked immediately. Then the search continues."""
    server = await checking()
    await upload(server, await server.player("bob"), endless())
    await until(reactor, lambda: claims(server) == [(True, 1, True)])
    ann = await server.player("ann")
    took = []
    for _ in range(5):
        began = time.monotonic()
        await checked(reactor, server, await upload(server, ann, game()))
        took.append(time.monotonic() - began)
    assert claims(server) == [(True, 1, True)]
    figure(f"from the upload to the verdict, during a search: {max(took):.2f} s")
    assert max(took) < 10


async def test_no_transaction_is_open_during_a_check(checking, reactor):
    """Even a long search keeps no connection in a transaction."""
    server = await checking()
    await upload(server, await server.player("bob"), endless())
    await until(reactor, lambda: claims(server) == [(True, 1, True)])
    transactions = (
        "SELECT pid, xact_start FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL"
    )
    lasting = {*server.sql(transactions)}
    for _ in range(20):
        await deferLater(reactor, 0.05)
        lasting &= {*server.sql(transactions)}
    assert claims(server) == [(True, 1, True)]  # the search still runs
    assert lasting == set()


async def test_account_is_deleted_immediately_during_a_check(checking, reactor):
    """The result of the check is dropped."""
    server = await checking()
    bob = await server.player("bob")
    await upload(server, bob, endless())
    await until(reactor, lambda: claims(server) == [(True, 1, True)])
    began = time.monotonic()
    await bob.delete_account()
    assert time.monotonic() - began < 2
    replay_id = await upload(server, await server.player("ann"), game())
    assert (await checked(reactor, server, replay_id))["status"] == "verified"
    assert server.sql("SELECT count(*) FROM replays") == [(1,)]


async def test_killed_checker_loses_no_verdict(checking, reactor):
    """Another one takes its place, and the claim lapses."""
    server = await checking(times={"claim": 1.0, "restart": 0.1})
    ann = await server.player()
    first = await freeze(reactor, server, ann)
    replay_id = await upload(server, ann, game())
    await until(reactor, lambda: claims(server) == [(False, 1, True)])
    os.kill(first, signal.SIGKILL)
    assert (await checked(reactor, server, replay_id))["status"] == "verified"
    assert first not in checkers(os.getpid())


def forbid(number):
    """Answer a signal as the kernel answers a process that may not send it."""
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


async def test_checker_that_cannot_be_signalled_ends_with_its_input(reactor, monkeypatch):
    """Root without CAP_KILL can't signal a checker, which runs as the user nobody."""
    process = processes.CheckerProcess(reactor, CHECKER)
    assert await process.ready
    answered = process.check(encoded(endless()), search=True)
    monkeypatch.setattr(process.transport, "signalProcess", forbid)
    process.kill()
    assert await process.ended == 0
    assert await answered is None
    process.kill()


async def test_checker_that_is_about_to_end_gets_no_job(reactor):
    """Such a checker closes its input a while before its end is known. A request sent by then has no answer."""
    process = processes.CheckerProcess(reactor, CHECKER)
    assert await process.ready
    os.kill(process.transport.pid, signal.SIGSTOP)
    process.transport.closeStdin()
    await until(reactor, lambda: 0 not in process.transport.pipes)
    answered = process.check(encoded(game()), search=False)
    os.kill(process.transport.pid, signal.SIGCONT)
    assert await answered is None
    await process.ended


@pytest.mark.long
async def test_third_lapsed_claim_makes_a_replay_undecided(checking, reactor):
    """Three checkers have died at this replay."""
    server = await checking(times={"claim": 0.3, "renew": 0.1, "restart": 0.1})
    bob = await server.player("bob")
    replay_id = await upload(server, bob, endless())
    for attempt in (1, 2, 3):
        await until(reactor, lambda attempt=attempt: claims(server) == [(True, attempt, True)])
        for pid in checkers(os.getpid()):
            os.kill(pid, signal.SIGKILL)
    found = await checked(reactor, server, replay_id)
    assert (found["status"], found["reason"]) == ("undecided", "crashed")
    assert (await checked(reactor, server, await upload(server, bob, game())))["status"] == "verified"


async def test_unreadable_row_does_not_block_other_replays(checking, reactor, monkeypatch, logs):
    """The row becomes undecided in the end. The same process checks the others before that."""
    server = await checking(times={"claim": 0.5, "poll": 0.1})
    [(bob, _, _)] = players(server.dsn, 1)
    await until(reactor, lambda: checkers(os.getpid()))
    before = checkers(os.getpid())
    ids = insert(server, bob, count=3)
    server.sql("UPDATE replays SET received_at = '0044-03-15 BC' WHERE user_id = %s", (bob,))
    reading = checks.read

    async def read(statements, claim):
        if claim.replay_id == ids[0]:
            raise DatabaseError("missing chunk number 0 for toast value")  # as a damaged disk has it
        return await reading(statements, claim)

    monkeypatch.setattr(checks, "read", read)
    good = await upload(server, await server.player("ann"), game())
    assert (await checked(reactor, server, good))["status"] == "verified"
    await checked(reactor, server, *ids)
    assert server.sql("SELECT DISTINCT status, reason FROM verdicts WHERE replay_id <> %s", (good,)) == [
        ("undecided", "crashed")
    ]
    assert checkers(os.getpid()) == before


@pytest.mark.long
async def test_checker_that_has_grown_is_replaced(checking, reactor, logs):
    """The checker ends after its search. A job that it hasn't begun goes to another one, without costing an attempt."""
    server = await checking()
    ann = await server.player()
    for _ in range(2):
        await upload(server, ann, endless())
    found, before = set(), (logs / "tests.log").read_text().count("a checker ended")

    def ended():
        found.update(checkers(os.getpid()))
        return len(found) > 1 and claims(server) == [(True, 1, True)]

    await until(reactor, ended)
    assert server.sql("SELECT reason FROM verdicts") == [("budget",)]
    assert (logs / "tests.log").read_text().count("a checker ended") == before


async def test_hanging_checker_is_killed(checking, reactor):
    """The process lives, but doesn't answer in time."""
    server = await checking(times={"claim": 0.5, "renew": 0.1, "literal": 0.5, "restart": 0.1})
    ann = await server.player()
    frozen = await freeze(reactor, server, ann)
    replay_id = await upload(server, ann, game())
    assert (await checked(reactor, server, replay_id))["status"] == "verified"
    assert not alive(frozen)


async def test_other_program_in_place_of_a_checker_claims_no_replay(checking, reactor, monkeypatch, logs):
    """The service starts it again and again, and logs its output."""
    broken = (sys.executable, "-c", "raise SystemExit('no engine here')")
    monkeypatch.setitem(queue_worker.Checking.__init__.__kwdefaults__, "command", broken)
    server = await checking(times={"restart": 0.1})
    replay_id = await upload(server, await server.player("ann"), game())
    await until(reactor, lambda: (logs / "tests.log").read_text().count("with status 1: no engine here") > 2)
    assert claims(server) == [(False, 0, False)]
    assert (await verdict(server, replay_id))["status"] == "pending"


async def test_stop_gives_back_the_current_replay(checking, reactor):
    """A stop waits for no search, leaves no process, and undoes the claim."""
    server = await checking(checkers=2)
    await upload(server, await server.player("bob"), endless())
    await until(reactor, lambda: claims(server) == [(True, 1, True)] and len(checkers(os.getpid())) == 2)
    left = checkers(os.getpid())
    began = time.monotonic()
    await server.service.stopService()
    assert time.monotonic() - began < 4
    assert not any(map(alive, left))
    assert claims(server) == [(True, 0, False)]


async def test_checker_has_no_secret(checking, reactor, monkeypatch):
    """Arguments and environment have none. Its only connections are pipes, and its priority is the lowest."""
    monkeypatch.setitem(queue_worker.Checking.__init__.__kwdefaults__, "command", processes.CHECKER)
    await checking()
    (pid,) = await until(reactor, lambda: checkers(os.getpid()))
    known = (PROC / str(pid) / "cmdline").read_bytes() + (PROC / str(pid) / "environ").read_bytes()
    assert SECRET.encode() not in known
    assert b"canary" not in known
    assert [line.split(b"=")[0] for line in (PROC / str(pid) / "environ").read_bytes().split(b"\0")[:-1]] == [
        b"PYTHONPATH"
    ]
    await until(reactor, lambda: all(target.startswith("pipe:") for target in descriptors(pid)))
    await until(reactor, lambda: os.getpriority(os.PRIO_PROCESS, pid) == 19)


async def test_nodes_share_the_queue(checking, reactor, figure):
    """Two nodes check 24 uploads: each has exactly one verdict, and was checked once."""
    nodes = [await checking(), await checking()]
    ann = await nodes[0].player()
    ids = [await upload(nodes[0], ann, game(number % 4, undo=number % 2 == 1)) for number in range(24)]
    await checked(reactor, nodes[0], *ids)
    counted = [node.service.parts.metrics.registry.get_sample_value for node in nodes]
    done = [int(value("solisync_replay_verdicts_total", {"status": "verified"})) for value in counted]
    figure(f"verdicts of two nodes: {done}")
    assert sum(done) == 24
    assert sum(value("solisync_replay_check_cpu_seconds_total") for value in counted) > 0


async def test_old_replays_are_checked_when_the_queue_is_empty(checking, reactor, monkeypatch):
    """Replays that no trigger has queued come first, then those that an older engine didn't verify."""
    monkeypatch.setattr(queue_worker, "PAGE", 3)
    server = await checking(checkers=0)
    [(ann, _, _)] = players(server.dsn, 1)
    ids = insert(server, ann, count=10, body=encoded(refuted()).decode(), age="1 h")
    server.sql("DELETE FROM replay_checks")
    server.sql("INSERT INTO replay_sweep DEFAULT VALUES")
    monkeypatch.setattr(queue_worker, "ENGINE_VERSION", 2)
    undecided = "INSERT INTO verdicts (replay_id, status, checked_at, engine) VALUES (%s, 'undecided', now(), 1)"
    server.sql(undecided, ids[:1])
    other = await checking(times={"look": 0.1, "look_soon": 0.1})
    await checked(reactor, other, *ids)
    await until(reactor, lambda: tuple(server.sql("SELECT DISTINCT status FROM verdicts")) == (("refuted",),))


async def test_checks_continue_when_the_database_comes_back(checking, reactor, shared_dsn):
    """The connections are lost just before a verdict is stored."""
    server = await checking()
    ann = await server.player()
    ids = []
    for number in range(30):
        ids.append(await upload(server, ann, game(number % 4)))
        if number % 5 == 0:
            server.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'solisync'"
                " AND query LIKE '%%check%%'",
                (),
            )
    await checked(reactor, server, *ids, seconds=55)
    assert server.sql("SELECT DISTINCT status FROM verdicts") == [("verified",)]


async def test_replays_wait_without_checkers(checking, reactor):
    """A node with SOLISYNC_CHECKERS=0 checks nothing."""
    server = await checking(checkers=0)
    replay_id = await upload(server, await server.player(), game())
    assert checkers(os.getpid()) == set()
    assert (await verdict(server, replay_id))["status"] == "pending"
    assert claims(server) == [(False, 0, False)]
