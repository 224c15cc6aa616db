"""The numbers of each day, which housekeeping counts (docs/console.md "Numbers over time")."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from solisync.acts import players
from solisync.errors import DatabaseError
from solisync.rules.shapes import NIL
from solisync.storage import daily_numbers
from tests.harness.acting import act
from tests.harness.boards import check, verified
from tests.harness.concurrency import gather
from tests.harness.footprint import COLUMNS
from tests.harness.housekeeping import make_housekeeping
from tests.harness.payloads import replay
from tests.harness.players import players as with_sessions

MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
YESTERDAY = MIDNIGHT - DAY


class Process:
    """The housekeeping of a process that has just begun; a test may set its clock, `now`."""

    def __init__(self, database, reactor, now):
        self.now = now
        self._housekeeping = make_housekeeping(database, reactor, now=lambda: self.now or datetime.now(UTC))

    async def count(self, now=None):
        """Run a round, at this time if it is given."""
        self.now = now or self.now
        await self._housekeeping.prune()


@pytest.fixture
def process(open_database, reactor):
    """Return a function that starts the housekeeping of a process."""
    return lambda now=None: Process(open_database(), reactor, now)


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


async def test_first_round_counts_all_kept_days(server, process, numbers):
    """A day without events has 0. Nothing is known of the active players of days before the first count."""
    register(server, 3, YESTERDAY)
    register(server, 1, YESTERDAY, guest=True)
    register(server, 2, MIDNIGHT - 399 * DAY)
    register(server, 5, MIDNIGHT - 399 * DAY - MINUTE)
    assert await numbers("registrations", 2) == [None, None]
    await process().count()
    registrations = await numbers("registrations", 400)
    assert (registrations[:3], registrations[-1], sum(registrations)) == ([0, 3, 0], 2, 5)
    assert await numbers("guests") == [0, 1, 0, 0]
    assert await numbers("active") == [0, None, None, None]


async def test_each_number_counts_its_events(server, process, numbers, reactor):
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
    await process().count()
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
async def test_players_are_active_once_a_day(server, process, numbers, active):
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
    await process().count()
    assert (await numbers("active"))[0] == 2


async def test_finished_day_keeps_its_numbers(server, process, numbers):
    """Players who are deleted after the day, and replays that are checked again, stay counted on that day."""
    ann = await server.player("ann")
    replay_id = verified(server.dsn, (await ann.me()).id, 650)
    server.sql("UPDATE users SET created_at = %s", (YESTERDAY,))
    server.sql("UPDATE verdicts SET checked_at = %s", (YESTERDAY,))
    await process().count()
    check(server.dsn, replay_id, 0, status="refuted")
    server.sql("UPDATE verdicts SET checked_at = now()")
    await ann.delete_account()
    register(server, 7, YESTERDAY)
    await process().count()
    assert [await numbers(name, 2) for name in ("registrations", "verified")] == [[0, 1], [0, 1]]


async def test_number_of_a_day_never_falls(server, process, numbers):
    """A session that ends during the day leaves its player counted as active."""
    ann = await server.player("ann")
    await process().count()
    await ann.logout()
    await process().count()
    assert (await numbers("active"))[0] == 1


async def test_today_is_counted_hourly_and_after_a_start(server, process, numbers):
    """A process that runs on counts an hour after the last count; one that starts counts in its first round."""
    noon = YESTERDAY + 12 * HOUR
    running, counts = process(noon), []
    for passed in (0, 59, 61):
        register(server, 1, noon)
        await running.count(noon + passed * MINUTE)
        counts.append((await numbers("registrations"))[1])
    assert counts == [1, 1, 3]
    register(server, 1, noon)
    await process(noon + 62 * MINUTE).count()
    assert (await numbers("registrations"))[1] == 4


async def test_day_is_final_five_minutes_after_midnight(server, process, numbers):
    """An upload that was on its way at midnight still counts; the new day begins at midnight."""
    running, night = process(MIDNIGHT - 10 * MINUTE), MIDNIGHT - MINUTE
    register(server, 1, night)
    await running.count()
    register(server, 1, night)
    await running.count(MIDNIGHT + MINUTE)
    assert await numbers("registrations", 2) == [0, 1]
    register(server, 1, night)
    await running.count(MIDNIGHT + 6 * MINUTE)
    assert await numbers("registrations", 2) == [0, 3]
    register(server, 1, night)
    await running.count(MIDNIGHT + 3 * HOUR)
    assert await numbers("registrations", 2) == [0, 3]


async def test_fast_clock_of_a_node_begins_no_day(server, process):
    """The database's clock limits the day, and makes no number final early."""
    await process(MIDNIGHT + 2 * DAY).count()
    assert server.sql("SELECT max(day)::text, max(counted_at) <= now() FROM daily_numbers") == [
        (str(MIDNIGHT.date()), True)
    ]


async def test_two_nodes_count_each_day_once(server, process, numbers):
    """Simultaneous first rounds store each number once; the second node finds nothing to count."""
    register(server, 5, YESTERDAY)
    nodes = [process() for _ in range(4)]
    await gather(4, lambda node: node.count(), nodes)
    assert await numbers("registrations", 2) == [0, 5]
    ((first, last),) = server.sql("SELECT min(xmin::text), max(xmin::text) FROM daily_numbers WHERE name = 'replays'")
    assert first == last


@pytest.mark.parametrize("counted", range(0, 8, 3))
async def test_next_node_finishes_an_interrupted_round(server, process, numbers, monkeypatch, counted):
    """A node that is killed between two numbers leaves the first ones whole, and another node counts the others."""
    register(server, 5, YESTERDAY)
    left, whole = iter(range(counted)), daily_numbers.count

    async def until_killed(transaction, **given):
        if next(left, None) is None:
            raise DatabaseError("killed")
        return await whole(transaction, **given)

    monkeypatch.setattr(daily_numbers, "count", until_killed)
    await process().count()
    rows = "SELECT count(DISTINCT name), count(*) FROM daily_numbers WHERE name <> 'active'"
    assert server.sql(rows) in ([(counted, 400 * counted)], [(max(counted - 1, 0), 400 * max(counted - 1, 0))])
    monkeypatch.undo()
    await process().count()
    assert server.sql(rows) == [(7, 2800)]
    assert await numbers("registrations", 2) == [0, 5]


async def test_node_of_1_0_0_is_counted_too(server, process, numbers):
    """What its statements store and delete counts, except that a push alone makes no player active."""
    _, (bob, *_) = with_sessions(server.dsn, 2)
    server.sql("UPDATE refresh_tokens SET used_at = now() - interval '1 day', session_id = jti")
    server.sql(
        "INSERT INTO known_states (session_id, user_id, pushed, answers) SELECT jti, user_id, NULL, '{}'"
        " FROM refresh_tokens"
    )
    server.sql("DELETE FROM users WHERE id = %s", (bob,))
    await process().count()
    assert [(await numbers(name))[0] for name in ("registrations", "active", "deletions")] == [1, 0, 1]


async def test_numbers_are_kept_for_400_days(server, process):
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
    await process().count()
    oldest = (MIDNIGHT - 399 * DAY).date()
    assert server.sql("SELECT min(day) FROM daily_numbers") == [(oldest,)]
    assert server.sql("SELECT count(*), min(deleted_at) FROM account_deletions") == [(1, MIDNIGHT - 399 * DAY)]


async def test_reopened_days_are_counted_again(server, process, numbers, open_database):
    """Only these days change, and no number falls."""
    register(server, 2, YESTERDAY)
    register(server, 2, YESTERDAY - DAY)
    await process().count()
    server.sql("DELETE FROM users WHERE created_at < %s", (YESTERDAY,))
    register(server, 3, YESTERDAY)
    register(server, 9, YESTERDAY - 2 * DAY)
    await open_database().run(daily_numbers.count_again, (YESTERDAY - DAY).date())
    await process().count()
    assert await numbers("registrations") == [0, 5, 2, 0]


def test_no_number_names_a_player(server):
    """The tables of numbers have only days, times and counts, so exports and deletions don't concern them."""
    columns = [row for row in server.sql(COLUMNS) if row[0] in ("daily_numbers", "account_deletions")]
    assert [column for _, column in columns] == ["deleted_at", "day", "name", "count", "counted_at"]
