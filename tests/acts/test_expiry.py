"""Suspensions that are over, and cutoffs that no token is below: what housekeeping does about them."""

from datetime import UTC, datetime, timedelta

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from solisync.acts import players
from solisync.housekeeping import Housekeeping
from solisync.postgres.database import Database
from solisync.storage import STATEMENTS
from tests.harness.constants import PASSWORD


@pytest.fixture
def rounds(server, reactor):
    """Housekeeping on connections like those of the service."""
    database = Database(reactor=reactor, size=1, statements=STATEMENTS)
    database.open(server.dsn)
    yield Housekeeping(
        database=database, reactor=reactor, now=lambda: datetime.now(UTC), analytics_days=None, history_days=30
    )
    pytest_twisted.blockon(Deferred.fromCoroutine(database.close(1)))


async def test_a_suspension_ends_by_itself(server, acting, recorded, rounds):
    """Once its end has come, as an act of the service, and what was visible is so again; others last."""
    ids = {}
    for name in ("over", "longer", "open"):
        client = await server.player(name)
        await client.opt_in(name)
        ids[name] = (await client.me()).id
    later = datetime.now(UTC) + timedelta(hours=1)
    for name, until in {"over": later, "longer": later, "open": None}.items():
        await acting.perform(players.SUSPEND, ids[name], until=until)
    server.sql("UPDATE suspensions SET until = now() - interval '1 s' WHERE user_id = %s", (ids["over"],))
    for _ in range(2):
        await rounds.prune()
    assert server.sql("SELECT display_name FROM leaderboard WHERE visible") == [("over",)]
    assert await server.client().login("over", PASSWORD)
    ended = recorded("actor_kind, actor, act, reason, user_id::text")[3:]
    assert ended == [("service", "housekeeping", "unsuspend", None, ids["over"])]


async def test_an_end_that_was_put_off_meanwhile_is_not_taken(server, acting, recorded):
    """What decides is the suspension as it is when the act is done."""
    me = await (await server.player("ann")).me()
    await acting.perform(players.SUSPEND, me.id, until=datetime.now(UTC) + timedelta(hours=1))
    assert not (await acting.perform(players.UNSUSPEND, me.id, only_ended=True)).changed
    assert server.sql("SELECT count(*) FROM suspensions") == [(1,)]


async def test_old_cutoffs_are_forgotten(server, acting, rounds):
    """An hour after the last token has expired that they refuse; not before."""
    client = await server.player("ann")
    me = await client.me()
    await acting.perform(players.END_SESSIONS, me.id, access=True)
    for minutes, left in [(59, 1), (61, 0)]:
        server.sql("UPDATE access_cutoffs SET cutoff = extract(epoch FROM now()) - 60 * %s", (minutes,))
        await rounds.prune()
        assert server.sql("SELECT count(*) FROM access_cutoffs") == [(left,)]
