"""The queue of replays that wait to be checked (docs/verification.md "How replays get checked")."""

import time
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import chain

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from solisync.klondike import Reason, Status, Verdict
from solisync.storage.replays import boards, checks, rechecks
from tests.checking.uploads import insert
from tests.harness.concurrency import at_once
from tests.harness.players import players
from tests.harness.postgres import connect

UNDECIDED = Verdict(status=Status.UNDECIDED, reason=Reason.BUDGET)
REFUTED = Verdict(status=Status.REFUTED, reason=Reason.SCORE)
VERIFIED = Verdict(status=Status.VERIFIED, ruleset="2026-05-19", undos=2, score=650, moves=120)
VERIFIED_OLDER = replace(VERIFIED, ruleset="2026-05-01")


@pytest.fixture
def queue(server, open_database):
    """The functions of storage/replays/checks.py, each in its own transaction."""
    return Queue(open_database(size=4, statements=()))


class Queue:
    def __init__(self, database):
        self.database = database

    async def claim(self, *, search=False, seconds=30.0):
        return await self.database.run(checks.claim, search=search, seconds=seconds)

    async def claim_all(self, **which):
        """Return the ids of all waiting replays, in order."""
        claims = []
        while (claim := await self.claim(**which)) is not None:
            claims.append(claim.replay_id)
        return claims

    async def settle(self, claim, verdict=REFUTED, *, engine=1, timeline_digest=None):
        known = {"engine": engine, "timeline_digest": timeline_digest, "days": None, "proved": None}
        work = boards.changed_by, claim.user_id, checks.settle, claim, verdict
        return (await self.database.transact(*work, **known))[0]

    async def run(self, function, *arguments, **options):
        return await self.database.run(function, *arguments, **options)


def verdicts(server):
    return dict(server.sql("SELECT replay_id::text, status FROM verdicts"))


def waiting(server, where="true"):
    return {replay_id for (replay_id,) in server.sql(f"SELECT replay_id::text FROM replay_checks WHERE {where}")}


async def test_upload_of_an_old_node_is_queued(server, queue):
    """A trigger queues it in the transaction that stores it; a claim returns the replay."""
    [(ann, _, _)] = players(server.dsn, 1)
    (replay_id,) = insert(server, ann, body='{"é": 1}')
    claim = await queue.claim()
    assert (claim.replay_id, claim.user_id, claim.attempt) == (replay_id, ann, 1)
    assert (await queue.run(checks.read, claim)).body == '{"é": 1}'.encode()
    assert await queue.claim() is None


async def test_player_with_fewer_waiting_uploads_comes_first(server, queue):
    """An upload of bob waits for one of ann's five, not for all. The queue of searches works that way, too."""
    (ann, _, _), (bob, _, _) = players(server.dsn, 2)
    anns, (bobs,) = insert(server, ann, count=5), insert(server, bob)
    order = [anns[0], bobs, *anns[1:]]
    for replay_id in order:
        claim = await queue.claim()
        assert claim.replay_id == replay_id
        await queue.run(checks.search, claim)
    assert await queue.claim() is None
    assert await queue.claim_all(search=True) == order


async def test_searches_of_the_last_hour_lower_the_priority(server, queue):
    """Searches of deleted replays count, too. Searches of an hour ago are forgotten."""
    (ann, _, _), (bob, _, _) = players(server.dsn, 2)
    for replay_id in insert(server, ann, count=2):
        await queue.run(checks.search, await queue.claim())
        claim = await queue.claim(search=True)
        server.sql("DELETE FROM replays WHERE id = %s", (replay_id,))
        await queue.settle(claim)
    anns, bobs = insert(server, ann), insert(server, bob, count=3)
    for _ in range(4):
        await queue.run(checks.search, await queue.claim())
    assert await queue.claim_all(search=True) == [*bobs[:2], *anns, bobs[2]]
    server.sql("UPDATE recent_searches SET ended_at = ended_at - interval '1 hour'", ())
    assert await queue.run(checks.prune_searches, most=1) == 1
    assert await queue.run(checks.prune_searches, most=9) == 1
    assert server.sql("SELECT count(*) FROM recent_searches") == [(0,)]


async def test_searches_of_new_accounts_come_last(server, queue):
    """Only old replays come after those of accounts younger than a day. Literal checks keep their order."""
    made = [player for player, _, _ in players(server.dsn, 4)]
    server.sql("UPDATE users SET created_at = now() - interval '25 hours' WHERE id = %s", (made[3],))
    young = [replay_id for player in made[:3] for replay_id in insert(server, player)]
    grown = insert(server, made[3], count=3)
    (old,) = insert(server, made[0], age="2 d")
    order = [*young, *grown, old]
    for replay_id in order:
        claim = await queue.claim()
        assert claim.replay_id == replay_id
        await queue.run(checks.search, claim)
    assert await queue.claim_all(search=True) == [*grown, *young, old]


async def test_claim_does_not_read_the_replay(server, queue):
    """Each claim of an unreadable row counts as an attempt."""
    [(ann, _, _)] = players(server.dsn, 1)
    (replay_id,) = insert(server, ann)
    server.sql("UPDATE replays SET received_at = '0044-03-15 BC' WHERE id = %s", (replay_id,))
    for attempt in range(1, checks.ATTEMPTS + 2):
        claim = await queue.claim()
        assert (claim.replay_id, claim.attempt) == (replay_id, attempt)
        with pytest.raises(ValueError, match="year"):
            await queue.run(checks.read, claim)
        server.sql("UPDATE replay_checks SET claimed_until = now()", ())


async def test_lapsed_claim_stores_nothing(server, queue):
    """Another process may claim the replay then."""
    [(ann, _, _)] = players(server.dsn, 1)
    (replay_id,) = insert(server, ann)
    late = await queue.claim(seconds=0.01)
    time.sleep(0.02)
    claim = await queue.claim()
    assert (claim.replay_id, claim.attempt) == (replay_id, 2)
    await queue.settle(late)
    assert await queue.run(checks.renew, late, seconds=30) is None
    await queue.run(checks.search, late)
    await queue.run(checks.release, late)
    assert verdicts(server) == {}
    assert await queue.claim() is None
    await queue.settle(claim, VERIFIED)
    assert verdicts(server) == {replay_id: "verified"}
    assert waiting(server) == set()


async def test_claim_can_be_renewed_and_given_back(server, queue):
    """A renewed claim counts once; one that is given back doesn't count."""
    [(ann, _, _)] = players(server.dsn, 1)
    insert(server, ann)
    claim = await queue.claim(seconds=1)
    until = await queue.run(checks.renew, claim, seconds=30)
    assert until - claim.until > timedelta(seconds=25)
    await queue.run(checks.release, claim)
    assert await queue.claim() is None
    await queue.run(checks.release, replace(claim, until=until))
    assert (await queue.claim()).attempt == 1


async def test_simultaneous_claims_get_different_replays(server, queue):
    [(ann, _, _)] = players(server.dsn, 1)
    ids = insert(server, ann, count=20)

    def claim_some(_):
        connection = connect(server.dsn)
        with connection.cursor() as cursor:
            sql = checks.claim.statement.inline(0)
            found = []
            for _ in range(3):
                cursor.execute(sql, {"0.1": False, "0.2": 30})
                found += [row[0] for row in cursor.fetchall()]
        connection.close()
        return found

    found = await at_once(8, claim_some, range(8))
    assert sorted(chain.from_iterable(found)) == sorted(ids)


async def test_deleting_never_waits_for_a_check(server, queue):
    """A claimed replay is deleted immediately, with its account too; a later verdict is dropped."""
    (ann, _, token), (bob, _, _) = players(server.dsn, 2)
    insert(server, ann)
    (bobs,) = insert(server, bob)
    claims = [await queue.claim(), await queue.claim()]
    answer = await server.ask("DELETE", "/api/account", bearer=token)
    assert answer.status == 200
    server.sql("DELETE FROM replays WHERE id = %s", (bobs,))
    assert waiting(server) == set()
    for claim in claims:
        await queue.settle(claim, VERIFIED, timeline_digest=b"x")
    assert verdicts(server) == {}


async def test_verdict_waits_for_the_lock_on_its_player(server, queue, reactor):
    """Like all that writes rows of a player, it locks the player's row first."""
    [(ann, _, _)] = players(server.dsn, 1)
    (replay_id,) = insert(server, ann)
    claim = await queue.claim()
    with closing(connect(server.dsn)) as connection, connection.cursor() as cursor:
        connection.autocommit = False
        cursor.execute("SELECT FROM users WHERE id = %s FOR UPDATE", (ann,))
        settled = Deferred.fromCoroutine(queue.settle(claim))
        cursor.execute("DELETE FROM replays WHERE id = %s", (replay_id,))
        connection.commit()
    await settled
    assert verdicts(server) == {}


async def test_verdict_stays_until_the_next(server, queue):
    """A replay that is checked again keeps its verdict until then. A verdict of an older engine is dropped."""
    [(ann, _, _)] = players(server.dsn, 1)
    (replay_id,) = insert(server, ann)
    await queue.settle(await queue.claim(), REFUTED, engine=2)
    assert await queue.run(rechecks.enqueue, [replay_id], again=True) == {replay_id: True}
    assert verdicts(server) == {replay_id: "refuted"}
    await queue.settle(await queue.claim(), VERIFIED, engine=1)
    assert verdicts(server) == {replay_id: "refuted"}
    assert waiting(server) == set()
    await queue.run(rechecks.enqueue, [replay_id], again=True)
    await queue.settle(await queue.claim(), VERIFIED, engine=2, timeline_digest=b"x")
    assert verdicts(server) == {replay_id: "verified"}


async def test_check_without_a_result_keeps_a_proof(server, queue):
    """A replay whose next check runs out of budget stays verified. The newer engine doesn't check it again."""
    [(ann, _, _)] = players(server.dsn, 1)
    (replay_id,) = insert(server, ann)
    await queue.settle(await queue.claim(), VERIFIED_OLDER, engine=1, timeline_digest=b"x")
    assert await queue.run(rechecks.enqueue_outdated, engine=2, most=9) == 1
    await queue.settle(await queue.claim(), UNDECIDED, engine=2)
    assert verdicts(server) == {replay_id: "verified"}
    assert waiting(server) == set()
    assert await queue.run(rechecks.enqueue_outdated, engine=2, most=9) == 0


async def test_settling_reports_whether_the_verdict_is_new(server, queue):
    """A lapsed claim, a confirmed verdict and a check without a result are not new."""
    [(ann, _, _)] = players(server.dsn, 1)
    (replay_id,) = insert(server, ann)
    late = await queue.claim(seconds=0.01)
    time.sleep(0.02)
    claim = await queue.claim()
    settled = [await queue.settle(late, VERIFIED), await queue.settle(claim, VERIFIED_OLDER)]
    for engine, verdict in ((2, UNDECIDED), (3, VERIFIED_OLDER), (4, VERIFIED)):
        await queue.run(rechecks.enqueue, [replay_id], again=True)
        settled.append(await queue.settle(await queue.claim(), verdict, engine=engine))
    assert settled == [False, True, False, False, True]


async def test_newer_engine_rechecks_unverified_replays(server, queue):
    """Replays verified under the older ruleset are rechecked once. The engine skips its own verdicts."""
    [(ann, _, _)] = players(server.dsn, 1)
    refuted, verified, newer, older, newest = insert(server, ann, count=5)
    checked = ((REFUTED, 1), (VERIFIED, 1), (REFUTED, 2), (VERIFIED_OLDER, 1), (VERIFIED_OLDER, 2))
    for verdict, engine in checked:
        await queue.settle(await queue.claim(), verdict, engine=engine)
    assert await queue.run(rechecks.enqueue_outdated, engine=1, most=9) == 0
    assert await queue.run(rechecks.enqueue_outdated, engine=2, most=9) == 2
    assert waiting(server) == {refuted, older}
    assert await queue.run(rechecks.enqueue_outdated, engine=2, most=9) == 0
    assert set(verdicts(server)) == {refuted, verified, newer, older, newest}
    assert verdicts(server)[older] == "verified"
    for _ in range(2):
        await queue.settle(await queue.claim(), VERIFIED_OLDER, engine=2)
    assert await queue.run(rechecks.enqueue_outdated, engine=2, most=9) == 0


async def test_sweep_queues_old_replays_newest_first(server, queue):
    """Pages of them follow all uploads. Replays with a verdict are skipped."""
    [(ann, _, _)] = players(server.dsn, 1)
    ids = insert(server, ann, count=7, age="1 h")
    await queue.settle(await queue.claim())
    server.sql("DELETE FROM replay_checks")
    await queue.run(rechecks.sweep_again, again=False)
    assert [await queue.run(rechecks.sweep, most=3) for _ in range(4)] == [3, 3, 0, None]
    (upload,) = insert(server, ann, age="1 s")
    assert set(await queue.claim_all()) == {upload, *ids[1:]}
    order = server.sql("SELECT replay_id::text FROM replay_checks ORDER BY ahead, received_at")
    assert order[0] == (upload,)
    assert await queue.run(rechecks.sweep, most=3) is None


async def test_imported_replays_come_after_all_uploads(server, queue):
    """The newest of them come first, in the queue of searches as well."""
    [(ann, _, _)] = players(server.dsn, 1)
    (oldest,), (old,) = insert(server, ann, age="900 d"), insert(server, ann, age="2 d")
    uploads = insert(server, ann, count=3)
    order = [*uploads, old, oldest]
    for replay_id in order:
        claim = await queue.claim()
        assert claim.replay_id == replay_id
        await queue.run(checks.search, claim)
    assert await queue.claim_all(search=True) == order


async def test_sweep_can_include_replays_with_a_verdict(server, queue):
    """The sweep takes verdicts that are older than the request."""
    [(ann, _, _)] = players(server.dsn, 1)
    ids = insert(server, ann, count=3)
    for _ in ids:
        await queue.settle(await queue.claim(), VERIFIED)
    await queue.run(rechecks.sweep_again, again=False)
    assert await queue.run(rechecks.sweep, most=9) == 0
    await queue.run(rechecks.sweep_again, again=True)
    assert await queue.run(rechecks.sweep, most=9) == 3
    assert set(await queue.claim_all()) == set(ids)


async def test_sweep_skips_replays_that_are_being_deleted(server, queue):
    [(ann, _, _)] = players(server.dsn, 1)
    going, staying = insert(server, ann, count=2)
    server.sql("DELETE FROM replay_checks")
    with closing(connect(server.dsn)) as connection, connection.cursor() as cursor:
        connection.autocommit = False
        cursor.execute("DELETE FROM replays WHERE id = %s", (going,))
        await queue.run(rechecks.sweep_again, again=False)
        assert await queue.run(rechecks.sweep, most=9) == 1
        connection.rollback()
    assert waiting(server) == {staying}


async def test_queue_reports_its_lengths_and_oldest_upload(server, queue):
    """Old replays are counted separately."""
    [(ann, _, _)] = players(server.dsn, 1)
    insert(server, ann, count=2, age="90 s")
    insert(server, ann, age="9 d")
    await queue.run(checks.search, await queue.claim())
    found = await queue.run(checks.waiting)
    assert (found.literal, found.search, found.old) == (1, 1, 1)
    assert 80 < found.oldest_seconds < 1000


async def test_statements_use_an_index_with_10000_queued_replays(server, queue, figure):
    (ann, _, _), (bob, _, _) = players(server.dsn, 2)

    def fill():
        server.sql(
            "SET session_replication_role = replica;"  # no triggers, which take ten times as long
            " INSERT INTO replays SELECT gen_random_uuid(), (ARRAY[%s, %s])[1 + n %% 2]::uuid, now() - n * interval"
            " '10 s', '{}', 2, 'Zen', 'DrawOne', '1', '1', NULL, '2026-01-01' FROM generate_series(1, 10000) AS n",
            (ann, bob),
        )
        server.sql(
            "INSERT INTO replay_checks (replay_id, user_id, received_at, ahead, search)"
            " SELECT id, user_id, received_at, place, place % 2 = 0 FROM ("
            "  SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY received_at) AS place FROM replays"
            " ) AS replay"
        )
        server.sql(
            "SET session_replication_role = replica; INSERT INTO verdicts (replay_id, status, checked_at, engine)"
            " SELECT id, 'refuted', now(), 1 FROM replays"
        )
        server.sql("ANALYZE replays, replay_checks, verdicts")

    await deferToThread(fill)

    def plan(statement, *values):
        parameters = {f"0.{position}": value for position, value in enumerate(values, 1)}
        connection = connect(server.dsn)
        with connection.cursor() as cursor:
            cursor.execute("BEGIN; EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement.inline(0), parameters)
            ((found,),) = cursor.fetchall()
            cursor.execute("ROLLBACK")
        connection.close()
        return found[0]

    for statement, values in (
        (checks.claim.statement, (False, 30)),
        (checks.claim.statement, (True, 30)),
        (rechecks.sweep.statement, (100,)),
        (rechecks.enqueue_outdated.statement, (1, 100)),
    ):
        found = plan(statement, *values)
        assert "Seq Scan on replays" not in str(found)
        assert not [part for part in walk(found["Plan"]) if part.get("Node Type") == "Seq Scan" and is_large(part)]
        figure(f"{statement.name} {values}: {found['Execution Time']} ms")


def walk(plan):
    yield plan
    for below in plan.get("Plans", ()):
        yield from walk(below)


def is_large(part):
    return part.get("Relation Name") in ("replays", "replay_checks", "verdicts")
