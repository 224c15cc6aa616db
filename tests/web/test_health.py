"""Health (docs/protocol.md "The service")."""

import time

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock, deferLater

from solisync import __version__
from solisync.commands.smoke import PIXEL
from solisync.errors import DatabaseError, Unavailable
from solisync.rules.shapes import Features
from solisync.web.resources.health import ANSWER_SECONDS, EVERY_SECONDS, Health
from tests.fire.servers import servers
from tests.harness.postgres import run_sql, truncate
from tests.harness.service import start

FEATURES = Features(pages=True, public_avatars=False)


@pytest.mark.parametrize("path", ["/api/health", "/health"])
async def test_liveness_reports_version_and_features(server, path):
    """The two paths return the same. Features have their default settings."""
    answer = await server.ask("GET", path)
    features = {"pages": True, "public_avatars": False}
    assert (answer.status, answer.json) == (200, {"status": "ok", "version": __version__, "features": features})


async def test_features_match_the_service(reactor, shared_dsn):
    """Each feature is tried both switched on and off. The client reads them."""
    for pages, public in (("off", "on"), ("on", "off")):
        truncate(shared_dsn)
        settings = {"SOLISYNC_PAGES": pages, "SOLISYNC_PUBLIC_AVATARS": public}
        running = await start(reactor, shared_dsn, settings=settings)
        try:
            features = (await running.client().live()).features
            assert (await running.ask("GET", "/daily/2026-01-01")).status == (200 if features.pages else 404)
            url = (await (await running.player()).upload_avatar(PIXEL, "image/png")).avatar_url
            assert (await running.ask("GET", url)).status == (200 if features.public_avatars else 401)
            assert (features.pages, features.public_avatars) == (pages == "on", public == "on")
        finally:
            await running.service.stopService()


@pytest.mark.parametrize("path", ["/api/health/ready", "/health/ready"])
async def test_readiness_is_200_when_the_database_works(server, path):
    answer = await server.ask("GET", path)
    assert (answer.status, answer.json) == (200, {"status": "ready"})


async def test_readiness_needs_every_migration_of_the_build(reactor, empty_database):
    """A database with newer migrations is ready."""
    running = await start(reactor, empty_database)
    try:
        newest = "SELECT max(number) FROM schema_migrations"
        run_sql(empty_database, f"UPDATE schema_migrations SET number = -1 WHERE number = ({newest})")
        await deferLater(reactor, EVERY_SECONDS)
        answer = await running.ask("GET", "/api/health/ready")
        assert (answer.status, answer.json) == (503, {"error": "service unavailable"})
        assert int(answer.headers["retry-after"]) >= 1
        run_sql(empty_database, "INSERT INTO schema_migrations VALUES (9999, '9999_later.sql', 'x')")
        await deferLater(reactor, EVERY_SECONDS)
        assert (await running.ask("GET", "/api/health/ready")).status == 200
    finally:
        await running.service.stopService()


async def becomes(reactor, running, wanted):
    """Wait until readiness has had this status for longer than a probe is valid; return the slowest reply's seconds."""
    slowest, since = 0.0, None
    while since is None or time.monotonic() < since + 1.5 * EVERY_SECONDS:
        sent = time.monotonic()
        status = (await running.ask("GET", "/health/ready")).status
        slowest = max(slowest, time.monotonic() - sent)
        since = (since or sent) if status == wanted else None
        await deferLater(reactor, 0.1)
    return slowest


@pytest.mark.parametrize("trouble", ["commits hang", "frozen"])
async def test_readiness_follows_the_database_within_seconds(reactor, new_cluster, trouble):
    """The status is 503 while the database commits nothing or is silent, and 200 afterwards."""
    with servers(cluster=new_cluster) as made:
        primary = made.make_primary()
        running = await start(reactor, primary.dsn)
        try:
            primary.freeze() if trouble == "frozen" else primary.wait_for_standby("nobody")
            assert await becomes(reactor, running, 503) < 10 * ANSWER_SECONDS
            primary.thaw() if trouble == "frozen" else primary.wait_for_standby("")
            await becomes(reactor, running, 200)
        finally:
            await running.service.stopService()


async def test_read_only_database_is_not_ready(reactor, empty_database):
    """The database may have become a standby. The service is ready again when it accepts writes."""
    running = await start(reactor, empty_database)
    name = empty_database.rpartition("dbname=")[2]
    admin = empty_database.replace(f"dbname={name}", "dbname=postgres")
    try:
        for read_only, wanted in (("on", 503), ("off", 200)):
            run_sql(admin, f"ALTER DATABASE {name} SET default_transaction_read_only = {read_only}")
            run_sql(admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            await becomes(reactor, running, wanted)
    finally:
        await running.service.stopService()


class Counting:
    """A database that counts probes, and answers them as the test wants."""

    def __init__(self):
        self.probes = []

    def run(self, work):
        self.probes.append(Deferred())
        return self.probes[-1]


async def status(request):
    try:
        await request
    except Unavailable:
        return 503
    return 200


def test_probes_are_shared_and_limited():
    """One probe runs at a time, at most one a second.

    Its result is valid for a second; a silent probe counts as failed.
    """
    clock, database, answers = Clock(), Counting(), []
    health = Health(features=FEATURES, database=database, schema_number=1, reactor=clock)

    def ask(times):
        for _ in range(times):
            Deferred.fromCoroutine(status(health.ready())).addCallback(answers.append)

    ask(10)
    assert (len(database.probes), answers) == (1, [])
    database.probes[0].callback(1)
    ask(10)
    assert (len(database.probes), answers) == (1, [200] * 20)
    clock.advance(0.9)
    ask(1)
    assert len(database.probes) == 1
    clock.advance(0.2)
    ask(3)
    assert (len(database.probes), len(answers)) == (2, 21)
    clock.advance(2.4)
    assert len(answers) == 21
    clock.advance(0.2)
    ask(5)
    assert (len(database.probes), answers[21:]) == (2, [503] * 8)
    database.probes[1].errback(DatabaseError("outcome unknown"))
    ask(1)
    assert (len(database.probes), len(answers)) == (3, 29)
    database.probes[2].callback(0)
    ask(1)
    assert answers[29:] == [503] * 2


def test_hang_up_leaves_the_shared_probe_running():
    """Other clients wait for the same probe."""
    database = Counting()
    health = Health(features=FEATURES, database=database, schema_number=1, reactor=Clock())
    gone, stays = (Deferred.fromCoroutine(status(health.ready())) for _ in range(2))
    gone.addErrback(lambda failure: failure.trap(CancelledError))
    gone.cancel()
    assert not database.probes[0].called
    database.probes[0].callback(1)
    assert stays.result == 200


async def test_only_liveness_works_without_a_database(reactor, empty_database):
    """Health returns 200; readiness and data routes return 503 with Retry-After."""
    running = await start(reactor, empty_database)
    name = empty_database.rpartition("dbname=")[2]
    admin = empty_database.replace(f"dbname={name}", "dbname=postgres")
    try:
        run_sql(admin, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
        run_sql(admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        assert (await running.ask("GET", "/health")).status == 200
        await deferLater(reactor, EVERY_SECONDS)
        for method, path in (("GET", "/health/ready"), ("POST", "/api/auth/login")):
            answer = await running.ask(method, path)
            assert (answer.status, answer.json) == (503, {"error": "service unavailable"})
            assert int(answer.headers["retry-after"]) >= 1
    finally:
        run_sql(admin, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
        await running.service.stopService()
