"""Patroni, as deploy/patroni has it, under two nodes of solisync with players on them, with faults of servers.

No acknowledged write is lost, no spent refresh token works again, no node is restarted. The first write comes within
a second of the promotion, and readiness is right within 2.5 seconds.
"""

import contextlib
import tempfile
import time
from pathlib import Path

import pytest
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.postgres.pool import SESSIONS_PER_CONNECTION
from solisync.web.resources.health import ANSWER_SECONDS
from tests.fire.acknowledged import Players
from tests.ha.cluster import Cluster
from tests.ha.watching import Promotions, Readiness, Refreshing
from tests.harness.concurrency import until, wait_for
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import SOLISYNC, launch_service
from tests.harness.processes import launching, run
from tests.harness.service import ready

PROGRAMS = ("patroni", "etcd", "haproxy", "pgbouncer")
WRITE_SECONDS = 1.0  # from the promotion to the first write
BUSY = 10  # how much slower than promised the machine of a test may be
SLACK = 2.0  # of readiness, which once took 7 s to tell the truth
SESSIONS_MAX = 2 * (SESSIONS_PER_CONNECTION * 8 + 1)  # of two nodes; one more while it is looked at where it leads
OUTAGE_SECONDS = 90
AWAY_SECONDS = 15

pytestmark = [pytest.mark.needs(*PROGRAMS), pytest.mark.limit(300)]


@pytest.fixture(scope="module")
def cluster():
    with tempfile.TemporaryDirectory(prefix="ha-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        made = Cluster(Path(name))
        try:
            yield made.start()
        finally:
            made.end()


@pytest.fixture
def settled(cluster):
    """The cluster when all three servers are healthy."""
    wait_for(lambda: cluster.healthy, 2 * PATIENCE)
    return cluster


@pytest.fixture(scope="module")
def nodes(cluster, logs):
    """Two nodes with all servers in their DATABASE_URL."""
    with launching(logs) as launch:
        yield [launch_service(launch, "", DATABASE_URL=cluster.url) for _ in "ab"]


@pytest.fixture(scope="module")
def pooled_nodes(cluster, logs):
    """Two nodes behind PgBouncer and HAProxy."""
    with launching(logs) as launch:
        url = cluster.start_proxies()
        given = {"DATABASE_URL": url, "SOLISYNC_PREPARED_STATEMENTS": "off"}
        yield [launch_service(launch, "", **given) for _ in "ab"]


class Scene:
    """Players on two nodes, and observations of them and of the servers while they play."""

    def __init__(self, cluster, nodes, reactor):
        self.cluster = cluster
        self.nodes = nodes
        self.players = [Players(node, 2) for node in nodes]
        self.readiness = [Readiness(node, players) for node, players in zip(nodes, self.players, strict=True)]
        self.refreshing = [Refreshing(node) for node in nodes]
        self.promotions = Promotions(cluster)
        self._reactor = reactor

    @contextlib.asynccontextmanager
    async def playing(self):
        """Play while the block runs."""
        for node in self.nodes:
            await ready(self._reactor, node.client(), 60)
        async with contextlib.AsyncExitStack() as stack:
            for players in self.players:
                await stack.enter_async_context(players.playing())
            for watching in (*self.readiness, *self.refreshing, self.promotions):
                stack.enter_context(watching)
            await deferLater(self._reactor, 5)
            yield
            await deferLater(self._reactor, 5)

    async def promoted(self, since):
        """Return when a server became the primary."""
        return await until(self._reactor, lambda: self.promotions.since(since), OUTAGE_SECONDS)

    async def wrote(self, since):
        """Return when both nodes had acknowledged a write after this moment, and when both were ready after that."""
        wrote = await until(
            self._reactor,
            lambda: all(moments := [players.wrote_after(since) for players in self.players]) and max(moments),
            OUTAGE_SECONDS,
        )
        ready = await until(
            self._reactor,
            lambda: all(moments := [each.ready_after(since) for each in self.readiness]) and max(moments),
            OUTAGE_SECONDS,
        )
        return wrote, ready

    async def check(self, say, *, pooled=False):
        """Check: nothing is lost, no spent token works, no node ended, and readiness was right; print figures."""
        dsn = self.cluster.dsn(await deferToThread(lambda: self.cluster.primary))
        for players in self.players:
            await deferToThread(players.check, dsn)
        again = sum([await deferToThread(each.accepted_again) for each in self.refreshing])
        lie = max(each.longest_lie for each in self.readiness)
        slowest = max(each.slowest for each in self.readiness)
        spent = sum(len(each.spent) for each in self.refreshing)
        say(f"{spent} spent tokens, {again} accepted again; readiness wrong for {lie:.1f} s, slowest {slowest:.1f} s")
        for players in self.players:
            say(str(players))
        assert again == 0
        assert [node.popen.poll() for node in self.nodes] == [None, None]
        assert all("Traceback" not in node.log for node in self.nodes)
        assert lie < ANSWER_SECONDS + SLACK
        assert slowest < ANSWER_SECONDS + SLACK


async def lose_primary(scene):
    """Cut the primary's power; start it again when another one has taken over."""
    number = await deferToThread(lambda: scene.cluster.primary)
    began = time.monotonic()
    await deferToThread(scene.cluster.kill_server, number)
    promoted = await scene.promoted(began)
    return began, promoted, lambda: scene.cluster.start_server(number)


async def freeze_primary(scene):
    """Freeze the primary until it is replaced; then its watchdog resets the machine."""
    number = await deferToThread(lambda: scene.cluster.primary)
    began = time.monotonic()
    await deferToThread(scene.cluster.freeze_server, number)
    promoted = await scene.promoted(began)

    def reset():
        scene.cluster.kill_server(number)
        scene.cluster.start_server(number)

    return began, promoted, reset


async def switch_over(scene):
    """Move the primary as an operator does."""
    began = time.monotonic()
    await deferToThread(scene.cluster.switch_over)
    return began, await scene.promoted(began), lambda: None


async def lose_etcd(scene):
    """Freeze etcd: no server can hold a lease, so the primary steps down until etcd is back."""
    began = time.monotonic()
    scene.cluster.freeze_etcd()
    await until(scene._reactor, lambda: not scene.promotions.primaries, OUTAGE_SECONDS)
    await deferLater(scene._reactor, max(0, began + AWAY_SECONDS - time.monotonic()))
    scene.cluster.freeze_etcd(thaw=True)
    return began, await scene.promoted(began), lambda: None


@pytest.mark.parametrize("happens", [switch_over, lose_primary, freeze_primary, lose_etcd])
async def test_nodes_find_the_next_primary(settled, nodes, reactor, figure, happens):
    scene = Scene(settled, nodes, reactor)
    async with scene.playing():
        began, promoted, repair = await happens(scene)
        wrote, ready = await scene.wrote(promoted)
        await deferLater(reactor, 3)
        await deferToThread(repair)
    figure(
        f"{happens.__name__}: promoted after {promoted - began:.1f} s, on both nodes written {wrote - promoted:.2f} s"
        f" and ready {ready - promoted:.2f} s later"
    )
    await scene.check(figure)
    assert wrote - promoted < WRITE_SECONDS * BUSY
    assert ready - promoted < WRITE_SECONDS * BUSY + ANSWER_SECONDS


async def test_frozen_standby_delays_commits_only(settled, nodes, reactor, figure):
    """Commits hang until the primary waits for the other standby. Readiness reports that, and sessions stay few."""
    scene = Scene(settled, nodes, reactor)
    number = await deferToThread(lambda: settled.synchronous)
    async with scene.playing():
        began = time.monotonic()
        await deferToThread(settled.freeze_server, number)
        await until(reactor, lambda: all(players.statuses[500] for players in scene.players), OUTAGE_SECONDS)
        sessions = await deferToThread(count_sessions, settled)
        wrote, _ = await scene.wrote(time.monotonic())
        await deferToThread(settled.thaw_server, number)
    figure(f"standby frozen: no writes for {wrote - began:.1f} s, up to {sessions} sessions of two nodes")
    assert sessions <= SESSIONS_MAX
    await scene.check(figure)


@pytest.mark.limit(400)
async def test_nodes_behind_pgbouncer_survive_a_lost_primary(settled, pooled_nodes, reactor, figure):
    """The time of the recovery is only printed."""
    scene = Scene(settled, pooled_nodes, reactor)
    async with scene.playing():
        began, promoted, repair = await lose_primary(scene)
        wrote, ready = await scene.wrote(promoted)
        await deferLater(reactor, 3)
        await deferToThread(repair)
    figure(
        f"behind PgBouncer and HAProxy: promoted after {promoted - began:.1f} s, written {wrote - promoted:.2f} s and"
        f" ready {ready - promoted:.2f} s later"
    )
    await scene.check(figure)


async def test_backup_can_be_made_from_a_standby(settled, nodes, reactor, tmp_path):
    """The source is docs/high-availability.md "Backups"."""
    await ready(reactor, nodes[0].client())
    url = settled.url.replace("read-write", "prefer-standby")
    done = await deferToThread(run, *SOLISYNC, "backup", tmp_path / "dump", DATABASE_URL=url)
    assert (done.status, done.err) == (0, [])
    assert (tmp_path / "dump").stat().st_size > 10_000


def count_sessions(cluster):
    """Return how many sessions the nodes have on the primary."""
    sessions = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'solisync'"
    return len(cluster.sql(cluster.primary, sessions))
