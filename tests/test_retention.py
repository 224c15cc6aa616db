"""The retention clock: how it moves, and that no other clock deletes what is old (docs/decisions.md)."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.acts import players
from solisync.storage import retention
from tests.harness.acting import act
from tests.harness.concurrency import gather
from tests.harness.database_clock import DatabaseClock
from tests.harness.footprint import play
from tests.harness.housekeeping import make_housekeeping
from tests.harness.kept_rows import kept_rows
from tests.harness.postgres import connect, run_sql
from tests.harness.service import refused, start
from tests.postgres.test_statements import STATEMENTS

MONTH, MINUTE, STEP = timedelta(days=31), timedelta(minutes=1), timedelta(minutes=24)
CLOCK = "SELECT at, moved_at FROM retention_clock"


@pytest.fixture
def clock(migrated_database):
    return DatabaseClock(migrated_database)


spans = st.one_of(
    st.timedeltas(timedelta(0), timedelta(minutes=3)),
    st.timedeltas(-timedelta(days=4000), timedelta(days=4000)),
    st.sampled_from([timedelta(0), MINUTE, STEP, MONTH, -MONTH, timedelta(seconds=59)]),
)


def test_clock_of_the_database_moves_the_retention_clock_by_24_minutes_a_minute(clock, migrated_database):
    """Whatever that clock does, the retention clock never falls, and what is read is never later than both."""
    connection = connect(migrated_database)
    cursor = connection.cursor()

    def ask(sql, *parameters):
        cursor.execute(sql, parameters)
        return cursor.fetchone()

    @given(st.lists(spans, min_size=1, max_size=30))
    def check(steps):
        now = datetime(2026, 1, 1, tzinfo=UTC)
        cursor.execute("UPDATE clock_of_test SET fixed = %s", (now,))
        cursor.execute("UPDATE retention_clock SET at = %s, moved_at = %s", (now, now))
        for step in steps:
            now += step
            cursor.execute("UPDATE clock_of_test SET fixed = %s", (now,))
            at, moved_at = ask(CLOCK)
            cursor.execute(retention.move.statement.sql)
            later, moved_later = ask(CLOCK)
            is_due = not now - MINUTE <= moved_at <= now
            assert later == (max(at, min(now, at + STEP)) if is_due else at)
            assert moved_later == (now if is_due else moved_at)
            assert ask("SELECT now FROM retention") == (min(later, now),)
            (behind,) = ask(f"SELECT {retention.BEHIND}")
            assert abs(behind - (now - min(later, now)).total_seconds()) <= 0.5

    check()
    connection.close()


async def test_many_nodes_move_the_clock_once(clock, migrated_database, open_database):
    """One of 16 statements at the same time moves a clock that is a week behind."""
    run_sql(migrated_database, "UPDATE retention_clock SET at = at - interval '7 days', moved_at = '-infinity'")
    ((before, _),) = run_sql(migrated_database, CLOCK)
    nodes = [open_database(migrated_database, size=4) for _ in range(4)]
    await gather(16, lambda turn: nodes[turn % 4].run(retention.move), range(16))
    assert run_sql(migrated_database, CLOCK)[0][0] == before + STEP


async def test_catching_up_sets_the_clock(clock, migrated_database, open_database):
    """The statement returns how far the clock was behind."""
    database = open_database(migrated_database)
    clock.step("7 days")
    assert await database.run(retention.catch_up) == pytest.approx(7 * 86_400, abs=60)
    assert await database.run(retention.behind) < 60
    clock.step("0 days")
    assert await database.run(retention.catch_up) == 0
    assert run_sql(migrated_database, "SELECT at > now() + interval '6 days' FROM retention_clock") == [(True,)]


@pytest.mark.parametrize("nodes", ["node too", "database alone"])
async def test_clock_that_is_wrong_for_two_minutes_deletes_nothing(
    clock, migrated_database, reactor, open_database, nodes
):
    """Housekeeping and a refresh run while the clock is 31 days ahead. No row is lost, and no access comes back."""
    ahead = timedelta(0)
    running = await start(reactor, migrated_database, now=lambda: datetime.now(UTC) + ahead)
    ann, cut, gone, guest = [running.client() for _ in range(4)]
    await play(migrated_database, ann, "ann")
    for client, name in (cut, "cut"), (gone, "gone"):
        await client.register(name, "correct horse")
    await guest.guest()
    await guest.logout()  # the last use alone keeps it
    spent = cut.tokens.access_token
    until = datetime.now(UTC) + timedelta(days=10)
    await act(reactor, migrated_database, players.suspend, (await gone.me()).id, until=until)
    await act(reactor, migrated_database, players.end_sessions, (await cut.me()).id, access=True)
    assert (await running.ask("GET", "/api/me", bearer=spent)).status == 401
    await cut.login("cut", "correct horse")
    await running.service.parts.history.flush()
    run_sql(migrated_database, "UPDATE admin_codes SET expires_at = now() + interval '1 hour'")  # not 15 minutes
    before = kept_rows(migrated_database)
    try:
        clock.step("31 days")
        ahead = MONTH if nodes == "node too" else ahead
        rounds = make_housekeeping(open_database(migrated_database), reactor, analytics_days=30)
        await rounds.prune()
        clock.step("31 days 61 s")
        await rounds.prune()
        other = running.client()
        await other.register("other", "correct horse")
        await other.refresh()
        clock.step("0 days")
        ahead = timedelta(0)
        await rounds.prune()
        assert before - kept_rows(migrated_database) == set()
        assert (await running.ask("GET", "/api/me", bearer=spent)).status == 401
        assert (await cut.refresh()).access_token
        assert (await refused(gone.me()))[0] == 403
        assert (await ann.refresh()).access_token
    finally:
        await running.service.stopService()


def test_statements_that_delete_by_age_read_the_retention_clock():
    """The memory of an hour alone is deleted by the clock of the database."""
    older = re.compile(r"<=? *\(?(?:SELECT )?(?:extract\(epoch FROM )?(?:clock_timestamp|now)\(\)")
    by_clock = {name for name, each in STATEMENTS.items() if "DELETE" in each.sql and older.search(each.sql)}
    assert by_clock == {"prune_rate_limits", "checks_prune_searches"}
    assert sum("DELETE" in each.sql and retention.NOW in each.sql for each in STATEMENTS.values()) >= 9
