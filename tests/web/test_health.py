"""Health (docs/protocol.md "The service")."""

import pytest

from solisync import __version__
from tests.harness.postgres import run_sql
from tests.harness.service import start


@pytest.mark.parametrize("path", ["/api/health", "/health"])
async def test_liveness_tells_the_version(server, path):
    """Both spellings answer the same."""
    answer = await server.ask("GET", path)
    assert (answer.status, answer.json) == (200, {"status": "ok", "version": __version__})


@pytest.mark.parametrize("path", ["/api/health/ready", "/health/ready"])
async def test_readiness_when_all_is_well(server, path):
    """Ready is a 200."""
    answer = await server.ask("GET", path)
    assert (answer.status, answer.json) == (200, {"status": "ready"})


async def test_not_ready_with_a_schema_that_is_too_old(reactor, empty_database):
    """A database that lacks a migration of this build is not ready, one that has a newer is."""
    running = await start(reactor, empty_database)
    try:
        newest = "SELECT max(number) FROM schema_migrations"
        run_sql(empty_database, f"UPDATE schema_migrations SET number = -1 WHERE number = ({newest})")
        answer = await running.ask("GET", "/api/health/ready")
        assert (answer.status, answer.json) == (503, {"error": "service unavailable"})
        assert int(answer.headers["retry-after"]) >= 1
        run_sql(empty_database, "INSERT INTO schema_migrations VALUES (9999, '9999_later.sql', 'x')")
        assert (await running.ask("GET", "/api/health/ready")).status == 200
    finally:
        await running.service.stopService()


async def test_without_a_database_only_liveness_answers(reactor, empty_database):
    """A database that takes no connections: health is 200, ready and data routes are 503 with Retry-After."""
    running = await start(reactor, empty_database)
    name = empty_database.rpartition("dbname=")[2]
    admin = empty_database.replace(f"dbname={name}", "dbname=postgres")
    try:
        run_sql(admin, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
        run_sql(admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        assert (await running.ask("GET", "/health")).status == 200
        for method, path in (("GET", "/health/ready"), ("POST", "/api/auth/login")):
            answer = await running.ask(method, path)
            assert (answer.status, answer.json) == (503, {"error": "service unavailable"})
            assert int(answer.headers["retry-after"]) >= 1
    finally:
        run_sql(admin, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
        await running.service.stopService()
