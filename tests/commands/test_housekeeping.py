"""`solisync housekeeping`: runs the jobs now, or sets the retention clock."""

from datetime import UTC, datetime, timedelta

import pytest

from solisync.diagnosis import database as database_checks
from solisync.errors import FatalError
from solisync.housekeeping import JOBS, NAMES
from solisync.storage.housekeeping import LastRun

BEHIND = "UPDATE retention_clock SET at = clock_timestamp() - interval '3 days', moved_at = '-infinity'"
SETTINGS = {job.setting: "30" for job in JOBS if job.setting} | {"SOLISYNC_AUTH_LIMIT": "10/60"}
OLD = "INSERT INTO account_history (happened_at, event, times) VALUES (now() - interval '32 days', 'x', 1)"
NOW = datetime(2026, 11, 20, tzinfo=UTC)


async def test_every_job_runs_and_reports_its_rows(administrate, server):
    """Jobs without rows report 0; the last runs are stored."""
    await server.player("ann")
    server.sql("UPDATE refresh_tokens SET expires_at = now() - interval '1 s'")
    server.sql(OLD)
    done = (await administrate("housekeeping", "--json", **SETTINGS)).records
    assert [record["job"] for record in done] == NAMES
    rows = {record["job"]: record["rows"] for record in done if record["rows"]}
    assert rows == {"expired sessions": 1, "history": 1}
    assert server.sql("SELECT count(*) FROM housekeeping WHERE ran_at > now() - interval '1 min'") == [(len(NAMES),)]


async def test_jobs_whose_settings_are_elsewhere_are_left_to_the_service(administrate, server):
    """The service may keep more than the default."""
    server.sql(OLD)
    done = (await administrate("housekeeping", "--json")).records
    left = {record["job"] for record in done if record["note"]}
    assert left == {job.name for job in JOBS if job.setting}
    assert server.sql("SELECT count(*) FROM account_history") == [(1,)]
    assert "history" in await administrate("housekeeping")


async def test_failed_job_is_reported(administrate, server):
    """The other jobs run, and the command fails."""
    await server.player("ann")
    server.sql("UPDATE refresh_tokens SET expires_at = now() - interval '1 s'")
    server.sql(
        "CREATE FUNCTION pg_temp_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;"
        "CREATE TRIGGER stuck BEFORE DELETE ON refresh_tokens FOR EACH ROW EXECUTE FUNCTION pg_temp_fail()"
    )
    try:
        done = (await administrate("housekeeping", "--json", fails=FatalError, **SETTINGS)).records
    finally:
        server.sql("DROP FUNCTION pg_temp_fail CASCADE")
    assert [(record["job"], record["note"]) for record in done if record["note"]] == [("expired sessions", "no")]
    assert len(done) == len(NAMES)


async def test_catching_up_moves_the_clock_and_deletes_nothing_itself(administrate, server):
    server.sql(BEHIND.replace("3 days", "60 hours"))
    await server.player("ann")
    server.sql("UPDATE refresh_tokens SET expires_at = now() - interval '1 day'")
    assert await administrate("housekeeping", "--catch-up", "--yes") == "moved the retention clock by 3 days\n"
    assert (await administrate("housekeeping", "--catch-up", "--yes", "--json")).json == {"moved_seconds": 0}
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(1,)]
    await administrate("housekeeping", **SETTINGS)
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(0,)]


async def test_catching_up_is_refused_while_two_clocks_differ(administrate, server, monkeypatch):
    """One of the two is wrong, and it may be the database's."""
    server.sql(BEHIND)

    async def ahead(connection):
        return datetime.now(UTC) + timedelta(days=31)

    monkeypatch.setattr(database_checks.introspection, "clock", ahead)
    await administrate("housekeeping", "--catch-up", "--yes", fails=FatalError)
    assert server.sql("SELECT now() - at > interval '2 days' FROM retention_clock") == [(True,)]


async def test_status_shows_the_clock_and_the_last_runs(administrate, server):
    server.sql(BEHIND)
    await administrate("housekeeping", **SETTINGS)
    status = (await administrate("status", "--json")).json
    assert 2.9 * 86_400 < status["retention_behind_seconds"] < 3 * 86_400  # a run moves it by 24 minutes
    assert [run["job"] for run in status["housekeeping"]] == NAMES
    assert all(run["ran_at"] for run in status["housekeeping"])
    assert "ending suspensions" in await administrate("status")


@pytest.mark.parametrize(
    ("behind", "level", "says"),
    [
        (0, "ok", "at the"),
        (300, "ok", "at the"),
        (301, "note", "6 minutes behind"),
        (90_000, "wrong", "25 hours behind"),
    ],
)
def test_clock_that_is_behind_is_found(behind, level, says):
    """More than a day is wrong: a pause, or a clock that was set forward."""
    finding = database_checks.retention_clock(behind)
    assert (finding.level, says in finding.text) == (level, True)


@pytest.mark.parametrize(
    ("hours", "serving", "level"),
    [([None, None], True, "note"), ([1, None], True, "ok"), ([1, 4], True, "wrong"), ([1, 4], False, "note")],
)
def test_job_that_runs_no_longer_is_found(hours, serving, level):
    """The finding is a note without a running service, which would run the jobs."""
    ran = [LastRun(f"job {n}", None if ago is None else NOW - timedelta(hours=ago)) for n, ago in enumerate(hours)]
    finding = database_checks.jobs(ran, NOW, serving)
    assert (finding.level, "job 1" in finding.text) == (level, 4 in hours)
