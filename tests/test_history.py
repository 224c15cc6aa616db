"""Events of accounts are kept as rows, without slowing a request down (docs/security.md "Logs")."""

from dataclasses import replace

import pytest
from twisted.internet.defer import Deferred, gatherResults

from solisync.players.history import History
from solisync.postgres import TIMES
from solisync.process.audit import Happened
from solisync.storage.players.history import DAILY_MAX, prune
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD
from tests.harness.housekeeping import make_housekeeping
from tests.harness.http_requests import new_address
from tests.harness.postgres import connect, lock_waiters, run_sql
from tests.harness.service import refused, start

ROWS = """
    SELECT event, username, reason, client, times FROM account_history LEFT JOIN users ON users.id = user_id
    WHERE client = %s ORDER BY account_history.id
"""
FAILED = Happened("login failed", None, None, "192.0.2.1")


async def rows(server, client):
    """Return the rows of this client: event, username, reason, client, times."""
    await server.service.parts.history.flush()
    return server.sql(ROWS, (client,))


@pytest.fixture
def observing(reactor, shared_dsn, open_database):
    """Make a separate History, and a list of the numbers of events that it has lost."""

    def make(dsn=shared_dsn, *, enabled=True, times=TIMES, **sizes):
        database, lost = open_database(dsn, statements=(), times=times), []
        return History(database=database, reactor=reactor, enabled=enabled, lost=lost.append, **sizes), lost

    return make


async def test_history_has_each_event_of_an_account(server):
    """Each event of the audit trail except refreshes has the player, the client, and the count within a moment."""
    address = new_address()
    client = server.client(address)
    await client.register("ann", PASSWORD)
    for _ in range(3):
        assert (await refused(server.client(address).login(" ann ", "wrong")))[0] == 401
    await client.refresh()
    await client.change_password(PASSWORD, PASSWORD)
    await client.export()
    await client.logout()
    assert await rows(server, address) == [
        ("register", "ann", None, address, 1),
        ("login failed", "ann", None, address, 3),
        ("password changed", "ann", None, address, 1),
        ("exported", "ann", None, address, 1),
        ("logged out", "ann", None, address, 1),
    ]


async def test_failed_login_of_an_unknown_name_stores_no_name(server):
    """The name may be a password typed into the wrong field. A wrong reset link stores no name either."""
    address = new_address()
    assert (await refused(server.client(address).login("nobody_here", PASSWORD)))[0] == 401
    assert (await refused(server.client(address).reset("no token", PASSWORD)))[0] == 401
    for body in ({"refresh_token": "x"}, b"nonsense"):
        await server.ask("POST", "/api/auth/refresh", body=body, address=address)
    assert await rows(server, address) == [
        ("login failed", None, None, address, 1),
        ("recovery refused", None, "no such link", address, 1),
    ]


async def test_history_stores_ipv6_clients_as_a_64_prefix(server):
    """A client may change its address within the /64; the rate limits count it that way, too."""
    for last in (1, 2):
        assert (await refused(server.client(f"2001:db8:1:2::{last}").login("nobody_here", PASSWORD)))[0] == 401
    network = "2001:db8:1:2::/64"
    assert await rows(server, network) == [("login failed", None, None, network, 2)]


async def test_rows_of_deleted_players_are_dropped_from_a_batch(server):
    """The rows of other players in the batch are stored."""
    address = new_address()
    gone, stays = server.client(address), server.client(address)
    for client, name in ((gone, "gone"), (stays, "stays")):
        await client.register(name, PASSWORD)
    await gone.delete_account()
    assert await rows(server, address) == [("register", "stays", None, address, 1)]


async def test_batch_waits_for_a_deletion_under_way(server, observing):
    """The rows of other players are stored, and no foreign key fails."""
    gone, stays = await server.player("gone"), await server.player("stays")
    ids = [(await client.me()).id for client in (gone, stays)]
    kept, lost = observing()
    for user_id in ids:
        kept.observe(Happened("exported", user_id, None, "192.0.2.77"))
    deleting = connect(server.dsn)
    deleting.cursor().execute("BEGIN; DELETE FROM users WHERE id = %s", (ids[0],))
    flushing = Deferred.fromCoroutine(kept.flush())
    await until(kept._reactor, lambda: lock_waiters(server.dsn))
    deleting.cursor().execute("COMMIT")
    deleting.close()
    await flushing
    assert (server.sql(ROWS, ("192.0.2.77",)), lost) == ([("exported", "stays", None, "192.0.2.77", 1)], [])


async def test_rows_of_a_player_are_limited_per_day(server, observing):
    """One more row marks the limit. Refusals, which other clients can cause, have a separate limit."""
    ann, bob = [(await (await server.player(name)).me()).id for name in ("ann", "bob")]
    yesterday = (
        "INSERT INTO account_history (happened_at, user_id, event, times) SELECT now() - interval '1 day', %s, 'x', 1"
    )
    for _ in range(3):
        server.sql(yesterday, (ann,))
    kept, _ = observing()
    await server.service.parts.history.flush()  # the registrations
    for number in range(DAILY_MAX + 50):
        client = f"10.0.0.{number}"
        kept.observe(Happened("replay listed", ann, None, client))
        kept.observe(Happened("login failed", ann, None, client))
        if not number % 60:
            await kept.flush()
    kept.observe(Happened("exported", bob, None, "10.0.0.1"))
    await kept.flush()
    counts = (
        "SELECT event, count(*)::int FROM account_history WHERE user_id = %s AND event <> 'x' GROUP BY 1 ORDER BY 1"
    )
    assert server.sql(counts, (ann,)) == [
        ("login failed", DAILY_MAX),
        ("more events", 1),
        ("more refusals", 1),
        ("register", 1),
        ("replay listed", DAILY_MAX - 1),
    ]
    assert server.sql(counts, (bob,)) == [("exported", 1), ("register", 1)]


async def test_name_is_reviewed_after_the_daily_limit_of_rows(server, observing):
    """The history keeps the last of the changes beyond the limit."""
    ann = (await (await server.player("ann")).me()).id
    await server.service.parts.history.flush()
    kept, _ = observing()
    for number in range(DAILY_MAX):
        kept.observe(Happened("replay listed", ann, None, f"10.0.0.{number}"))
    for client in ("10.0.1.1", "10.0.1.2", "10.0.1.3"):
        kept.observe(Happened("opted in", ann, None, client))
        kept.observe(Happened("opted in", ann, None, f"{client}0"))
        await kept.flush()
        kept.observe(Happened("replay listed", ann, None, client))
        await kept.flush()
        assert server.sql("SELECT client FROM account_history WHERE event = 'opted in'") == [(f"{client}0",)]
    assert server.sql("SELECT event, count(*)::int FROM account_history GROUP BY 1 ORDER BY 1") == [
        ("more events", 1),
        ("opted in", 1),
        ("register", 1),
        ("replay listed", DAILY_MAX - 1),
    ]


async def test_rows_of_a_clock_that_was_ahead_delay_no_deletion(server, open_database):
    """Housekeeping deletes the older rows behind them."""
    old = "INSERT INTO account_history (happened_at, event, times) SELECT now() + %s::interval, 'x', 1"
    for ago in ("1 year", "1 year", "-40 days"):
        server.sql(old, (ago,))
    assert await open_database().run(prune, days=30, most=2) == 1
    assert server.sql("SELECT count(*)::int FROM account_history WHERE happened_at > now()") == [(2,)]


async def test_two_nodes_share_the_daily_limit_of_rows(server, observing):
    """The nodes store events of a player at the same time."""
    ann = (await (await server.player("ann")).me()).id
    await server.service.parts.history.flush()
    nodes = [observing()[0] for _ in range(2)]
    for node, kept in enumerate(nodes):
        for number in range(DAILY_MAX):
            kept.observe(Happened("replay listed", ann, None, f"10.0.{node}.{number}"))
    await gatherResults([Deferred.fromCoroutine(kept.flush()) for kept in nodes])
    assert server.sql("SELECT count(*)::int FROM account_history WHERE user_id = %s", (ann,)) == [(DAILY_MAX + 1,)]


async def test_no_answer_waits_for_the_history(server):
    """While the table is locked, players log in as usual; the rows are stored later."""
    await server.player("ann")
    locking, address = connect(server.dsn), new_address()
    locking.cursor().execute("BEGIN; LOCK TABLE account_history IN ACCESS EXCLUSIVE MODE")
    flushing = Deferred.fromCoroutine(server.service.parts.history.flush())
    assert await server.client(address).login("ann", PASSWORD)
    assert not flushing.called
    locking.close()
    await flushing
    assert await rows(server, address) == [("login", "ann", None, address, 1)]


async def test_full_queue_drops_and_counts_new_events(observing):
    """A repetition of a queued event still counts."""
    kept, lost = observing(queue=2)
    events = [FAILED._replace(client=f"192.0.2.{number}") for number in range(4)]
    for event in (*events, *events):
        kept.observe(event)
    assert lost == [1, 1, 1, 1]
    assert [times for _, times in kept._waiting.values()] == [2, 2]


async def test_without_a_connection_events_wait(observing):
    """Repetitions are added up, and nothing is counted as lost."""
    kept, lost = observing(None, times=replace(TIMES, borrow=0.01))
    for _ in range(2):
        kept.observe(FAILED)
        await kept.flush()
    ((_, times),) = kept._waiting.values()
    assert (times, lost) == (2, [])


async def test_refused_batch_is_dropped_and_counted(observing, empty_database):
    """The table is missing here. Batch after batch is dropped, and the service runs on."""
    kept, lost = observing(empty_database, batch=2)
    for number in range(3):
        kept.observe(FAILED._replace(client=f"192.0.2.{number}"))
    await kept.flush()
    assert (lost, kept._waiting) == ([2, 1], {})


@pytest.mark.parametrize("times", [replace(TIMES, borrow=0.01), TIMES])
async def test_stop_counts_events_that_are_not_stored(observing, server, times):
    """The count includes the batch that is being stored, and events that wait for a connection."""
    locking = connect(server.dsn)
    locking.cursor().execute("BEGIN; LOCK TABLE account_history IN ACCESS EXCLUSIVE MODE")
    kept, lost = observing(None if times is not TIMES else server.dsn, times=times, batch=2)
    for number in range(3):
        kept.observe(FAILED._replace(client=f"192.0.2.{number}"))
    await kept.stop(0.2)
    assert lost == [3]
    locking.close()
    await until(kept._reactor, lambda: not kept._being_stored)


async def test_history_of_0_days_keeps_nothing(observing):
    """Memory holds nothing, either."""
    kept, _ = observing(enabled=False)
    kept.observe(FAILED)
    assert not kept._waiting


async def test_stop_stores_the_last_events(reactor, shared_dsn, server):
    """An event of the last second is not lost."""
    running, address = await start(reactor, shared_dsn), new_address()
    await running.client(address).register("ann", PASSWORD)
    await running.service.stopService()
    assert server.sql(ROWS, (address,)) == [("register", "ann", None, address, 1)]


@pytest.mark.parametrize(("days", "left"), [(30, 3), (1, 2), (0, 0)])
async def test_old_rows_are_deleted_in_batches_oldest_first(reactor, shared_dsn, server, open_database, days, left):
    """The clock of the database counts; with 0 days all rows are deleted."""
    database = open_database(statements=())
    for hours in (*[24 * 31] * 5, 25, 23, 0):
        run_sql(
            shared_dsn,
            "INSERT INTO account_history (happened_at, event, times) SELECT now() - make_interval(hours => %s), 'x', 1",
            (hours,),
        )
    await make_housekeeping(database, reactor, history_days=days, batch=2).prune()
    assert run_sql(shared_dsn, "SELECT count(*) FROM account_history") == [(left,)]


async def test_expired_links_are_deleted_and_the_others_counted(reactor, server, open_database):
    """A gauge shows the links that still work."""
    counted = []

    def show(*, reset_links, **others):
        counted.append(reset_links)

    for name, hours in (("ann", 1), ("bob", 1), ("cyd", -1)):
        await server.player(name)
        put = (
            "INSERT INTO reset_tokens SELECT id, %s, now() + make_interval(hours => %s) FROM users WHERE username = %s"
        )
        server.sql(put, (name.encode(), hours, name))
    database = open_database(statements=())
    await make_housekeeping(database, reactor, show=show).prune()
    assert (counted, server.sql("SELECT count(*) FROM reset_tokens")) == ([2], [(2,)])
