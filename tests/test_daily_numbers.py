"""The numbers of each day, which housekeeping counts (docs/console.md "Numbers over time")."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from psycopg2.extensions import parse_dsn

from solisync.acts import players
from solisync.postgres import opening
from solisync.postgres.transaction import in_transaction
from solisync.rules.shapes import NIL
from solisync.storage.operators import daily_numbers
from tests.harness.acting import act
from tests.harness.boards import check, verified
from tests.harness.concurrency import gather
from tests.harness.footprint import COLUMNS
from tests.harness.housekeeping import make_housekeeping
from tests.harness.payloads import replay
from tests.harness.players import players as with_sessions
from tests.harness.postgres import connect, run_sql

MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
YESTERDAY = MIDNIGHT - DAY


@pytest.fixture
def count(server, open_database, reactor):
    """Return a function that runs all jobs of housekeeping in a new process, at this time of the retention clock."""

    async def count(now=None):
        at = "infinity" if now is None else now
        server.sql("UPDATE retention_clock SET at = %s, moved_at = clock_timestamp()", (at,))
        await make_housekeeping(open_database(), reactor).prune()

    return count


@pytest.fixture
def numbers(open_database):
    """Return a function that reads one number of the last days, today first."""
    database = open_database()

    async def numbers(name, days=4):
        return [getattr(day, name) for day in reversed(await database.run(daily_numbers.of_days, days))]

    return numbers


def register(server, number, at, *, guest=None):
    """Store players who registered at this time."""
    server.sql(
        "INSERT INTO users (id, username, password_hash, created_at, guest)"
        " SELECT gen_random_uuid(), 'p' || gen_random_uuid(), 'none', %s, %s FROM generate_series(1, %s)",
        (at, guest, number),
    )


async def test_first_round_counts_all_kept_days(server, count, numbers):
    """A day without events has 0. Nothing is known of the active players of days before the first count."""
    register(server, 3, YESTERDAY)
    register(server, 1, YESTERDAY, guest=True)
    register(server, 2, MIDNIGHT - 399 * DAY)
    register(server, 5, MIDNIGHT - 399 * DAY - MINUTE)
    assert await numbers("registrations", 2) == [None, None]
    await count()
    registrations = await numbers("registrations", 400)
    assert (registrations[:3], registrations[-1], sum(registrations)) == ([0, 3, 0], 2, 5)
    assert await numbers("guests") == [0, 1, 0, 0]
    assert await numbers("active") == [0, None, None, None]


async def test_each_number_counts_its_events(server, count, numbers, reactor):
    """Deletions by players and operators count, and those of guests don't."""
    ann, bob, eve = [await server.player(name) for name in ("ann", "bob", "eve")]
    await (await server.player("dan")).delete_account()
    guest, deleted = server.client(), server.client()
    await guest.guest()
    await deleted.guest()
    await deleted.delete_account()
    for status in ("verified", "refuted", "refuted"):
        verified(server.dsn, (await ann.me()).id, 650, received_at=datetime.now(UTC), status=status)
    await act(reactor, server.dsn, players.suspend, (await bob.me()).id, until=None)
    await act(reactor, server.dsn, players.delete, (await eve.me()).id)
    await count()
    found = {name: (await numbers(name))[0] for name in daily_numbers.NAMES}
    assert found == {
        "registrations": 2,
        "guests": 1,
        "active": 2,
        "replays": 3,
        "verified": 1,
        "refuted": 2,
        "suspensions": 1,
        "deletions": 2,
    }


@pytest.mark.parametrize("active", ["session", "push", "upload"])
async def test_players_are_active_once_a_day(server, count, numbers, active):
    """Each of a used session, a push and an upload makes a player active."""
    ann, bob, _ = [await server.player(name) for name in ("ann", "bob", "eve")]
    pulled = (await ann.pull()).merged
    server.sql("UPDATE refresh_tokens SET used_at = used_at - interval '1 day'")
    for client in (ann, bob) * 2:
        if active == "session":
            await client.refresh()
        elif active == "push":
            await client.push(replace(pulled, user_id=NIL))
        else:
            await client.upload_replay(replay())
    await count()
    assert (await numbers("active"))[0] == 2


async def test_finished_day_keeps_its_numbers(server, count, numbers):
    """Players who are deleted after the day, and replays that are checked again, stay counted on that day."""
    ann = await server.player("ann")
    replay_id = verified(server.dsn, (await ann.me()).id, 650)
    server.sql("UPDATE users SET created_at = %s", (YESTERDAY,))
    server.sql("UPDATE verdicts SET checked_at = %s", (YESTERDAY,))
    await count()
    check(server.dsn, replay_id, 0, status="refuted")
    server.sql("UPDATE verdicts SET checked_at = now()")
    await ann.delete_account()
    register(server, 7, YESTERDAY)
    await count()
    assert [await numbers(name, 2) for name in ("registrations", "verified")] == [[0, 1], [0, 1]]


async def test_number_of_a_day_never_falls(server, count, numbers):
    """A session that ends during the day leaves its player counted as active."""
    ann = await server.player("ann")
    await count()
    await ann.logout()
    await count()
    assert (await numbers("active"))[0] == 1


async def test_day_is_final_five_minutes_after_midnight(server, count, numbers):
    """An upload that was on its way at midnight still counts; the new day begins at midnight."""
    night, midnight = YESTERDAY - MINUTE, YESTERDAY
    for at, counted in (-10 * MINUTE, 1), (MINUTE, 2), (6 * MINUTE, 3), (3 * HOUR, 3):
        register(server, 1, night)
        await count(midnight + at)
        assert (await numbers("registrations"))[2] == counted
    assert await numbers("registrations", 2) == [None, 0]


async def test_retention_clock_that_is_behind_begins_no_day(server, count):
    """Housekeeping counts no day that has not begun by the retention clock, and makes no number final."""
    await count(MIDNIGHT - 2 * DAY)
    assert server.sql("SELECT max(day)::text, max(counted_at) FROM daily_numbers") == [
        (str((MIDNIGHT - 2 * DAY).date()), MIDNIGHT - 2 * DAY)
    ]


async def test_two_nodes_count_each_day_once(server, count, numbers):
    """Simultaneous first rounds store each number once; the second node finds no finished day to count."""
    register(server, 5, YESTERDAY)
    await gather(4, lambda node: count(), range(4))
    assert await numbers("registrations", 2) == [0, 5]
    ((first, last),) = server.sql(
        "SELECT min(xmin::text), max(xmin::text) FROM daily_numbers WHERE name = 'replays' AND day < current_date"
    )
    assert first == last


@pytest.mark.parametrize("counted", range(0, 8, 3))
async def test_round_that_a_node_of_1_1_0_left_is_finished(server, count, numbers, counted):
    """Version 1.1.0 stores each number in its own transaction. A node that is killed between two leaves the first."""
    register(server, 5, YESTERDAY)
    await count()
    server.sql("DELETE FROM daily_numbers WHERE name = ANY (%s)", (list(daily_numbers.NAMES[counted:]),))
    await count()
    rows = "SELECT count(DISTINCT name), count(*) FROM daily_numbers WHERE name <> 'active'"
    assert server.sql(rows) == [(7, 2800)]
    assert await numbers("registrations", 2) == [0, 5]


async def test_node_of_1_0_0_is_counted_too(server, count, numbers):
    """What its statements store and delete counts, except that a push alone makes no player active."""
    _, (bob, *_) = with_sessions(server.dsn, 2)
    server.sql("UPDATE refresh_tokens SET used_at = now() - interval '1 day', session_id = jti")
    server.sql(
        "INSERT INTO known_states (session_id, user_id, pushed, answers) SELECT jti, user_id, NULL, '{}'"
        " FROM refresh_tokens"
    )
    server.sql("DELETE FROM users WHERE id = %s", (bob,))
    await count()
    assert [(await numbers(name))[0] for name in ("registrations", "active", "deletions")] == [1, 0, 1]


async def test_numbers_are_kept_for_400_days(server, count):
    """Older numbers and deletions are deleted."""
    server.sql(
        "INSERT INTO daily_numbers SELECT %s::date - n, 'replays', 1, now() FROM generate_series(399, 402) AS n",
        (MIDNIGHT,),
    )
    server.sql(
        "INSERT INTO account_deletions SELECT %s::timestamptz - n * interval '1 day'"
        " FROM generate_series(399, 402) AS n",
        (MIDNIGHT,),
    )
    await count()
    oldest = (MIDNIGHT - 399 * DAY).date()
    assert server.sql("SELECT min(day) FROM daily_numbers") == [(oldest,)]
    assert server.sql("SELECT count(*), min(deleted_at) FROM account_deletions") == [(1, MIDNIGHT - 399 * DAY)]


async def test_reopened_days_are_counted_again(server, count, numbers, open_database):
    """Only these days change, and no number falls."""
    register(server, 2, YESTERDAY)
    register(server, 2, YESTERDAY - DAY)
    await count()
    server.sql("DELETE FROM users WHERE created_at < %s", (YESTERDAY,))
    register(server, 3, YESTERDAY)
    register(server, 9, YESTERDAY - 2 * DAY)
    await open_database().run(daily_numbers.count_again, (YESTERDAY - DAY).date())
    await count()
    assert await numbers("registrations") == [0, 5, 2, 0]


def test_no_number_names_a_player(server):
    """The tables of numbers have only days, times and counts, so exports and deletions don't concern them."""
    columns = [row for row in server.sql(COLUMNS) if row[0] in ("daily_numbers", "account_deletions")]
    assert [column for _, column in columns] == ["deleted_at", "day", "name", "count", "counted_at"]


async def test_counting_may_take_longer_than_the_role_allows_behind_a_pooler(
    migrated_database, open_database, reactor, monkeypatch
):
    """The transaction alone lifts the limit: the next client of the connection has it again."""
    name = parse_dsn(migrated_database)["dbname"]
    run_sql(migrated_database, f"ALTER ROLE CURRENT_USER IN DATABASE {name} SET statement_timeout = '200ms'")
    monkeypatch.setattr(opening, "_backend_pid", lambda connection: -1)  # the server of a pooler has another pid
    locking = connect(migrated_database)
    locking.cursor().execute("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
    reactor.callLater(0.6, locking.close)
    async with open_database(migrated_database, statements=()).connection(bounded=False) as connection:
        assert connection.server.pooled
        await in_transaction(connection, daily_numbers.count)
        assert await connection.execute("SHOW statement_timeout") == [("200ms",)]
