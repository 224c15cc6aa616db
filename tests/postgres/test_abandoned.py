"""Connections that the pool gave up while the server was still at work: counted, bounded, and closed at the end."""

import pytest
from twisted.internet.defer import DeferredList
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.errors import DatabaseError, Interrupted, Unavailable
from solisync.postgres import PoolTimes, pool
from tests.fire.servers import all_hosts, servers
from tests.harness.concurrency import until
from tests.harness.postgres import run_sql
from tests.postgres.notes import SCHEMA, add, backends, notes, pid, sleep, started

SIZE = 4
MOST = pool.SESSIONS_PER_CONNECTION * SIZE


@pytest.fixture
def primary(new_cluster):
    """A separate server, because a setting of all its databases lets commits wait."""
    with servers(cluster=new_cluster) as made:
        made = made.make_primary()
        run_sql(made.dsn, SCHEMA)
        yield made


async def test_hanging_commits_take_few_sessions(make_database, primary, reactor):
    """A missing standby and clients that retry add no sessions. Once a standby answers, nothing is lost."""
    database = make_database(SIZE, to=primary.dsn, times=PoolTimes(work=0.5, borrow=0.3))
    await until(reactor, lambda: database.pool.idle == SIZE)
    primary.wait_for_standby("nobody")
    work = []
    most = 0
    while database.pool.abandoned < MOST or len(work) < 60:
        work.append(started(database.run(add, len(work))))
        await deferLater(reactor, 0.1)
        most = max(most, len(backends(primary.dsn)))
    assert SIZE < most <= MOST + 1  # one more is made now and then, to see whether the server is still the same
    assert database.pool.abandoned == MOST
    outcomes = await DeferredList(work, consumeErrors=True)
    assert all(failure.check(Interrupted, Unavailable) for _, failure in outcomes)
    assert "outcome unknown, no answer within 0.5 s" in {str(failure.value) for _, failure in outcomes}
    primary.wait_for_standby("")
    await until(reactor, lambda: database.pool.abandoned == 0 and len(backends(primary.dsn)) == SIZE)
    await database.run(add, -1)
    assert -1 in notes(primary.dsn)
    assert len(notes(primary.dsn)) == MOST + 1


async def test_abandoned_connections_count_for_one_server_only(make_database, reactor, new_cluster):
    """After a failover, connections to a frozen server are closed: the new server has none of their sessions."""
    with servers(cluster=new_cluster) as made:
        frozen, other = made.make_primary("frozen"), made.make_primary("other")
        other.kill()
        run_sql(frozen.dsn, SCHEMA)
        database = make_database(SIZE, to=all_hosts(frozen, other, wanted="any"), times=PoolTimes(work=0.3))
        await until(reactor, lambda: database.pool.idle == SIZE)
        frozen.freeze()
        outcomes = await DeferredList([started(database.run(add, n)) for n in range(SIZE)], consumeErrors=True)
        assert not any(succeeded for succeeded, _ in outcomes)
        assert database.pool.abandoned == SIZE
        await deferToThread(other.start)
        await until(reactor, lambda: database.pool.idle == SIZE)
        assert database.pool.abandoned == 0
        assert database.pool.servers == {f"127.0.0.1:{other.port}": SIZE}


async def test_abandoned_connection_closes_when_its_statement_ends(make_database, dsn, reactor):
    """The borrower of the connection got an error in time."""
    database = make_database(times=PoolTimes(work=0.2))
    slow = await database.run(pid)
    with pytest.raises(DatabaseError):
        await database.run(sleep, 2)
    assert database.pool.abandoned == 1
    assert await database.run(pid) != slow
    await until(reactor, lambda: database.pool.abandoned == 0 and slow not in dict(backends(dsn)))
    assert database.pool.replaced == 1


async def test_abandoned_connections_are_closed_with_the_pool(make_database, dsn):
    """Closing the pool doesn't wait for them."""
    database = make_database(times=PoolTimes(work=0.2))
    with pytest.raises(DatabaseError):
        await database.run(sleep, 3)
    await database.close(0)
    assert database.pool.abandoned == 0
