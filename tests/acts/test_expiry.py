"""Ended suspensions and old cutoffs, as housekeeping treats them."""

from datetime import UTC, datetime, timedelta

import pytest
from twisted.logger import capturedLogs, formatEvent

from solisync.acts import players
from solisync.events.notices import BoardsChanged
from tests.harness.constants import PASSWORD
from tests.harness.housekeeping import make_housekeeping


@pytest.fixture
def in_service(server, open_database):
    """A connection like the service's: every statement that it runs is prepared."""
    return open_database()


@pytest.fixture
def rounds(in_service, reactor):
    """Housekeeping as in the service."""
    return make_housekeeping(in_service, reactor)


async def over(server, acting, *names):
    """Suspend players of these names with visible entries until a past time; return their ids."""
    ids = []
    for name in names:
        client = await server.player(name)
        await client.opt_in(name)
        ids.append((await client.me()).id)
        await acting.perform(players.suspend, ids[-1], until=datetime.now(UTC) + timedelta(hours=1))
    server.sql("UPDATE suspensions SET until = now() - interval '1 s'")
    return ids


async def test_suspension_ends_at_its_time(server, acting, recorded, in_service, reactor):
    """The service ends it as an act, and notifies processes.

    What was visible is visible again; later suspensions continue.
    """
    (ended,) = await over(server, acting, "over")
    later = datetime.now(UTC) + timedelta(hours=1)
    for name, until in {"longer": later, "open": None}.items():
        await acting.perform(players.suspend, (await (await server.player(name)).me()).id, until=until)
    told = []
    rounds = make_housekeeping(in_service, reactor, publish=lambda *notices: told.extend(notices))
    for _ in range(2):
        await rounds.prune()
    assert server.sql("SELECT display_name FROM leaderboard WHERE visible") == [("over",)]
    assert await server.client().login("over", PASSWORD)
    acts = recorded("actor_kind, actor, act, reason, user_id::text")[3:]
    assert acts == [("service", "housekeeping", "unsuspend", None, ended)]
    assert told == [BoardsChanged()]


async def test_all_suspensions_that_are_over_end_in_one_round(server, acting, in_service, reactor):
    """A round has as many batches as it needs."""
    await over(server, acting, "one", "two", "three")
    await make_housekeeping(in_service, reactor, batch=1).prune()
    assert server.sql("SELECT count(*)::int FROM suspensions") == [(0,)]


async def test_failure_does_not_stop_the_rest_of_housekeeping(server, acting, rounds):
    """A suspension that can't be ended and a table that can't be pruned are logged; everything else is done."""
    stuck, _ = await over(server, acting, "stuck", "over")
    server.sql(
        "CREATE FUNCTION pg_temp_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;"
        f"CREATE TRIGGER stuck BEFORE DELETE ON suspensions FOR EACH ROW WHEN (OLD.user_id = '{stuck}')"
        " EXECUTE FUNCTION pg_temp_fail()"
    )  # each lock in a separate transaction
    server.sql("CREATE TRIGGER stuck BEFORE DELETE ON refresh_tokens FOR EACH ROW EXECUTE FUNCTION pg_temp_fail()")
    await server.player("gone")
    server.sql("UPDATE refresh_tokens SET expires_at = now() - interval '1 day'")
    server.sql("UPDATE access_cutoffs SET cutoff = 1")
    try:
        with capturedLogs() as logged:
            await rounds.prune()
    finally:
        server.sql("DROP FUNCTION pg_temp_fail CASCADE")
    assert server.sql("SELECT user_id::text FROM suspensions") == [(stuck,)]
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(1,)]
    assert server.sql("SELECT count(*) FROM access_cutoffs") == [(0,)]
    said = [formatEvent(event) for event in logged if event["log_namespace"] == "solisync.housekeeping.Housekeeping"]
    assert said == [
        f"the suspension of {stuck} could not be ended: no",
        "housekeeping postpones expired sessions for a minute: no",
    ]


async def test_postponed_end_keeps_the_suspension(server, acting, recorded):
    """The suspension is read again when the act runs."""
    me = await (await server.player("ann")).me()
    await acting.perform(players.suspend, me.id, until=datetime.now(UTC) + timedelta(hours=1))
    assert not (await acting.perform(players.unsuspend, me.id, only_ended=True)).changed
    assert server.sql("SELECT count(*) FROM suspensions") == [(1,)]


async def test_old_cutoffs_are_deleted(server, acting, rounds):
    """A cutoff is kept until two days and an hour after the last token that it refuses has expired."""
    client = await server.player("ann")
    me = await client.me()
    await acting.perform(players.end_sessions, me.id, access=True)
    for minutes, left in [(49 * 60 - 1, 1), (49 * 60 + 1, 0)]:
        server.sql("UPDATE access_cutoffs SET cutoff = extract(epoch FROM now()) - 60 * %s", (minutes,))
        await rounds.prune()
        assert server.sql("SELECT count(*) FROM access_cutoffs") == [(left,)]
