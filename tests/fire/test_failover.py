"""A primary with a synchronous standby behind one DATABASE_URL: the service heals after any loss of the primary."""

import contextlib
import json
import socket
import time

import pytest
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.errors import ConnectionFailed, DatabaseError
from solisync.postgres import PoolTimes
from solisync.postgres.database import Database
from solisync.postgres.opening import open_connection
from solisync.postgres.statement import Statement
from tests.fire.acknowledged import Players
from tests.fire.servers import all_hosts, servers
from tests.harness.concurrency import until
from tests.harness.entry_points import SOLISYNC
from tests.harness.processes import run

HEAL_SECONDS = 2.0
PORT = Statement("port", "SELECT inet_server_port()")


@contextlib.contextmanager
def primary_and_standby(cluster):
    with servers(cluster=cluster) as made:
        primary = made.make_primary()
        yield primary, made.make("standby").follow(primary)


@pytest.fixture
def pair(new_cluster):
    """A primary and the standby that its commits wait for."""
    with primary_and_standby(new_cluster) as both:
        yield both


@pytest.fixture(scope="module")
def either(new_cluster):
    """A primary and its standby, which a test must not change."""
    with primary_and_standby(new_cluster) as both:
        yield both


def test_doctor_sees_the_standby(pair):
    """Without the standby nothing can be written, and the doctor reports an error."""
    primary, standby = pair

    def examine():
        done = run(*SOLISYNC, "doctor", "--json", DATABASE_URL=primary.dsn)
        found = [json.loads(line) for line in done.stdout.decode().splitlines()]
        return [(each["level"], each["text"]) for each in found if each["subject"] == "standbys"]

    assert examine() == [("ok", "1 connected; commits wait for standby")]
    standby.kill()
    ((level, text),) = examine()
    assert (level, "commits wait for standby" in text, "nothing can be written" in text) == ("wrong", True, True)


@pytest.mark.parametrize("way", ["killed", "demoted", "frozen"])
async def test_failover_loses_no_acknowledged_write(serve, pair, reactor, figure, way):
    """Under load the primary ends and the standby is promoted. Soon after, writes are accepted."""
    primary, standby = pair
    process = await serve(all_hosts(primary, standby))
    players = Players(process)
    async with players.playing():
        await deferLater(reactor, 5)
        if way == "demoted":
            await deferToThread(primary.become_read_only)
        else:
            primary.freeze() if way == "frozen" else primary.kill()
            await until(reactor, lambda: players.statuses[503], 20)  # a failover manager isn't quicker either
        promoted = await deferToThread(standby.promote)
        healed = await until(reactor, lambda: players.wrote_after(promoted), 10 * HEAL_SECONDS) - promoted
        await deferLater(reactor, 5)
    figure(f"{way}: wrote {healed:.2f} s after the promotion; {players}")
    await deferToThread(players.check, standby.dsn)
    if way == "demoted":  # requests on a connection to the old primary were served by the new one
        assert set(players.statuses) == {200}
    assert process.stop() == 0


@pytest.mark.short
@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("any", "primary"),
        ("read-write", "primary"),
        ("primary", "primary"),
        ("read-only", "standby"),
        ("standby", "standby"),
        ("prefer-standby", "standby"),
    ],
)
async def test_target_session_attrs_works_as_in_libpq(reactor, either, wanted, first):
    """Several hosts work, too."""
    primary, standby = either
    connection = await open_connection(reactor, all_hosts(primary, standby, wanted=wanted))
    port = {"primary": primary.port, "standby": standby.port}[first]
    assert await connection.execute("SELECT inet_server_port()") == [(port,)]
    connection.close()


@pytest.mark.short
async def test_prefer_standby_accepts_a_primary(reactor, either):
    """Without a standby, `prefer-standby` connects to the primary; `standby` doesn't."""
    primary, _ = either
    (await open_connection(reactor, all_hosts(primary, primary, wanted="prefer-standby"))).close()
    with pytest.raises(ConnectionFailed, match=r"not in hot standby mode.*; .*not in hot standby mode"):
        await open_connection(reactor, all_hosts(primary, primary, wanted="standby"))


@pytest.mark.short
async def test_silent_address_does_not_hide_the_next_one(reactor, either, monkeypatch):
    """A name with several addresses works like several hosts; a whole pool is soon full."""
    primary, _ = either
    addresses = [("127.0.0.2", 0), ("127.0.0.1", 0)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", address) for address in addresses])
    with socket.create_server(("127.0.0.2", primary.port)):
        times = PoolTimes(head_start=0.05, connect=1000)
        database = Database(reactor=reactor, size=8, statements=(PORT,), times=times)
        database.open(primary.dsn.replace("127.0.0.1", "db.test"))
        assert await database.run(lambda transaction: transaction.run((PORT,))) == [(primary.port,)]
        held = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'solisync'"
        await until(reactor, lambda: len(primary.sql(held)) == 8)
        await database.close(0)


@pytest.mark.parametrize("wanted", ["any", "read-write"])
async def test_pool_leaves_a_frozen_primary(reactor, pair, wanted):
    """The first work on it takes a bounded time; then all connections lead to the next host."""
    primary, standby = pair
    times = PoolTimes(work=0.5, connect=1000)
    database = Database(reactor=reactor, size=8, statements=(PORT,), times=times)
    database.open(all_hosts(primary, standby, wanted=wanted))
    held = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'solisync'"
    await until(reactor, lambda: len(primary.sql(held)) == 8)
    standby.promote()
    primary.freeze()
    began = time.monotonic()
    with pytest.raises(DatabaseError):
        await database.run(lambda transaction: transaction.run((PORT,)))
    ports = [await database.run(lambda transaction: transaction.run((PORT,))) for _ in range(8)]
    assert ports == [[(standby.port,)]] * 8
    assert time.monotonic() - began < 10 * 0.5
    await until(reactor, lambda: len(standby.sql(held)) == 8)
    await database.close(0)
