"""Analytics over HTTP (docs/protocol.md "Analytics")."""

import itertools
import json
import random
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
import pytest_twisted
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, gatherResults

from solisync.postgres.statement import Statement
from solisync.rules.analytics import AnalyticsEvent, Batch
from solisync.storage import STATEMENTS, analytics
from tests.harness.concurrency import gather, until
from tests.harness.housekeeping import make_housekeeping
from tests.harness.plans import plan
from tests.harness.postgres import connect, lock_waiters, run_sql, truncate
from tests.harness.strategies import examples, texts

NOW = "2026-11-20T12:00:00Z"
PATH = "/api/analytics"
HOLD = Statement("hold", "SELECT FROM analytics_events LIMIT 1 FOR UPDATE")


def events(count):
    """Return so many valid events."""
    return [
        {"id": str(uuid4()), "event_type": "game_won", "payload": {"n": n}, "client_time": NOW} for n in range(count)
    ]


def batch(*events, session="s", **more):
    return {"session_id": session, "events": list(events), **more}


async def report(server, body, **more):
    """Report events from a separate address and return the reply."""
    return await server.ask("POST", PATH, body=body, **more)


async def counted(server, body):
    """Return (accepted, duplicates, indexes of the rejected) of a batch."""
    answer = await report(server, body)
    assert answer.status == 200, answer
    assert answer.json["ok"] is True
    return answer.json["accepted"], answer.json["duplicates"], [each["index"] for each in answer.json["rejected"]]


def stored(server):
    return server.sql("SELECT count(*) FROM analytics_events")[0][0]


def names(server):
    """Return how many events each name has, with None for events without a name."""
    query = "SELECT name, count(*) FROM analytics_events e LEFT JOIN analytics_names n ON n.id = name_id GROUP BY 1"
    return dict(server.sql(query))


def started(coroutine):
    return Deferred.fromCoroutine(coroutine)


async def test_event_is_stored_as_it_was_sent(server):
    """The payload is kept byte for byte, and an upper-case id in its canonical spelling. The route needs no token."""
    body = b"""{"session_id": "\\u00e9", "user_id": "ann", "later": ["\\ud800"], "events": [{"id":
        "0B8F6F0E-6C53-4D0A-9C3E-2F1D8A7B5C41", "event_type": "won", "payload": {"b": 1e400,  "a": "\\u00e9", "a": 2},
        "client_time": "2026-11-20T14:00:00.123456789+02:00"}]}"""
    answer = await report(server, body)
    assert answer.json == {"ok": True, "accepted": 1, "duplicates": 0, "rejected": []}
    (row,) = server.sql("SELECT e.id, session_id, name, event_type, payload, client_time, received_at"
                        " FROM analytics_events e JOIN analytics_names n ON n.id = name_id")  # fmt: skip
    time = datetime(2026, 11, 20, 12, 0, 0, 123457, tzinfo=UTC)
    payload = '{"b": 1e400,  "a": "\\u00e9", "a": 2}'
    assert row[:-1] == ("0b8f6f0e-6c53-4d0a-9c3e-2f1d8a7b5c41", "é", "ann", "won", payload, time)
    assert abs(datetime.now(UTC) - row[-1]) < timedelta(minutes=1)


async def test_client_class_reports_events(server):
    """`Client` sends a batch and decodes its receipt."""
    event = AnalyticsEvent(id=str(uuid4()), event_type="game_won", client_time=datetime.now(UTC))
    receipt = await server.client().report(Batch(session_id="s", events=[event, event]))
    assert (receipt.accepted, receipt.duplicates, receipt.rejected) == (2, 1, [])


async def test_batch_has_at_most_fifty_events(server):
    """The service stores nothing of a batch of fifty-one, and nothing of a batch without valid events."""
    assert await counted(server, batch(*events(50))) == (50, 0, [])
    answer = await report(server, batch(*events(51)))
    assert (answer.status, answer.json) == (400, {"error": "batch may contain at most 50 events"})
    assert await counted(server, batch()) == (0, 0, [])
    assert await counted(server, batch(1, {}, [])) == (0, 0, [0, 1, 2])
    assert stored(server) == 50


@pytest.mark.parametrize("field", ["session_id", "user_id"])
async def test_name_has_1_to_64_code_points(server, field):
    """A name that is empty, longer, of another type or with U+0000 fails the whole batch with a 400."""
    for allowed in ("x", "😀" * 64):
        assert await counted(server, batch(*events(1)) | {field: allowed}) == (1, 0, [])
    for bad in ("", "x" * 65, 5, "a\0b", "\ud800"):
        answer = await report(server, json.dumps(batch(*events(1)) | {field: bad}).encode())
        assert answer.status == 400
        assert field in answer.json["error"]
    assert stored(server) == 2


async def test_event_is_stored_once(server):
    """Repeats are duplicates, whether they are in the same batch, in the same batch sent again, or in another batch."""
    first, second, third = events(3)
    again = first | {"id": first["id"].upper(), "event_type": "other"}
    assert await counted(server, batch(first, again, second)) == (3, 1, [])
    assert await counted(server, batch(first, again, second)) == (3, 3, [])
    assert await counted(server, batch(third, again, session="t")) == (2, 1, [])
    assert server.sql("SELECT count(*) FROM analytics_events WHERE event_type = 'game_won'") == [(3,)]


async def test_bad_event_does_not_fail_the_batch(server):
    """The receipt lists each rejected event with its reason, even where msgspec alone would refuse the body."""
    good = events(3)
    ahead = good[0] | {
        "id": str(uuid4()),
        "client_time": (datetime.now(UTC) + timedelta(hours=24, minutes=1)).isoformat(),
    }
    half = good[1] | {"id": str(uuid4()), "payload": "\ud800"}
    body = json.dumps(batch(good[0], ahead, good[1], half, good[2], "?")).encode()
    answer = await report(server, body)
    assert answer.json == {
        "ok": True,
        "accepted": 3,
        "duplicates": 0,
        "rejected": [
            {"index": 1, "error": "`client_time` is more than 24 hours ahead"},
            {"index": 3, "error": "event must not contain U+0000 or half of a surrogate pair"},
            {"index": 5, "error": "Expected `object`, got `str`"},
        ],
    }
    assert stored(server) == 3


async def test_events_of_one_name_share_a_row(server):
    """A UUID is one name in every spelling; events without a user have no row."""
    player = str(uuid4())
    for user in (player, player.upper(), UUID(player).hex, f"urn:uuid:{player}", f" {player}", None, "ann"):
        await counted(server, batch(*events(2), user_id=user))
    await counted(server, batch(*events(1)))
    assert names(server) == {player: 10, None: 3, "ann": 2}
    assert server.sql("SELECT count(*) FROM analytics_names") == [(2,)]


async def test_name_is_written_once_a_day(server):
    """The row of a name is written on its first day, and once on each later day with events."""
    query = "SELECT ctid::text, seen_on::text FROM analytics_names"
    await counted(server, batch(*events(1), user_id="ann"))
    before = server.sql(query)
    await counted(server, batch(*events(1), user_id="ann"))
    assert server.sql(query) == before
    server.sql("UPDATE analytics_names SET seen_on = seen_on - 1")
    moved = server.sql(query)
    await counted(server, batch(*events(1), user_id="ann"))
    assert server.sql(query) != moved
    assert server.sql(query)[0][1] == before[0][1]
    assert names(server) == {"ann": 3}


@pytest.mark.parametrize("username", ["ann", "ABCDEF0123456789abcdef0123456789"])
async def test_deleting_an_account_removes_its_name_from_all_events(server, username):
    """Events may name the player by id or username. Sending them again doesn't restore the name."""
    client, other = await server.player(username), await server.player("bob")
    player = (await client.me()).id
    for user in (player, player.upper(), username, username.title(), "bob", (await other.me()).id):
        await counted(server, batch(*events(1), user_id=user))
    again = batch(*events(2), user_id=username)
    await counted(server, again)
    await client.delete_account()
    left = {"bob", (await other.me()).id} | ({"Ann"} if username == "ann" else set())
    assert set(names(server)) == left | {None}
    assert stored(server) == 8
    assert await counted(server, again) == (2, 2, [])
    assert {name for (name,) in server.sql("SELECT name FROM analytics_names")} == left


async def test_username_that_is_the_id_of_another_player_means_that_player(server):
    """Deleting the owner of the username leaves the other player's events alone.

    Once the other player is deleted, the username means its owner again.
    """
    victim = await server.player("ann")
    player = (await victim.me()).id
    thief = await server.player(UUID(player).hex.upper())
    for user in (player, UUID(player).hex, "ann", (await thief.me()).id):
        await counted(server, batch(*events(1), user_id=user))
    await thief.delete_account()
    assert names(server) == {player: 2, "ann": 1, None: 1}
    heir = await server.player(UUID(player).hex)
    await victim.delete_account()
    await counted(server, batch(*events(1), user_id=UUID(player).hex))
    assert names(server) == {player: 1, None: 4}
    await heir.delete_account()
    assert names(server) == {None: 5}


# Batches at the same time.


@pytest.fixture
def two(serve, shared_dsn):
    """Start two processes on one empty database; requests alternate between them."""
    truncate(shared_dsn)
    return itertools.cycle([pytest_twisted.blockon(started(serve(shared_dsn))) for _ in range(2)])


async def report_all(two, bodies):
    """Send all batches at the same time, alternating between the processes, and return the replies."""
    answers = await gatherResults([started(report(next(two), body)) for body in bodies])
    assert {answer.status for answer in answers} == {200}
    return [answer.json for answer in answers]


@pytest.mark.parametrize("user", [None, "ann"])
async def test_batch_sent_80_times_at_the_same_time_is_stored_once(two, shared_dsn, no_deadlocks, user):
    """Two processes store 50 rows with one name, and the counts of all receipts add up."""
    answers = await report_all(two, [batch(*events(50), user_id=user)] * 80)
    assert {answer["accepted"] for answer in answers} == {50}
    assert sum(50 - answer["duplicates"] for answer in answers) == 50
    assert run_sql(shared_dsn, "SELECT count(*), count(DISTINCT name_id) FROM analytics_events") == [(50, bool(user))]
    assert run_sql(shared_dsn, "SELECT count(*) FROM analytics_names") == [(bool(user),)]


async def test_batches_in_opposite_orders_do_not_deadlock(two, shared_dsn, no_deadlocks):
    """80 overlapping batches arrive in random orders under 3 names; each event is stored once."""
    shuffle = random.Random(1)
    pool = events(100)
    bodies = [batch(*shuffle.sample(pool, 50), user_id=f"p{n % 3}") for n in range(78)]
    answers = await report_all(two, [*bodies, batch(*pool[:50]), batch(*pool[:49:-1])])
    assert sum(50 - answer["duplicates"] for answer in answers) == 100
    assert run_sql(shared_dsn, "SELECT count(*) FROM analytics_events") == [(100,)]


async def while_held(server, reactor, statement, bodies, *, end):
    """Send batches while another transaction holds what they need, and end it when all batches wait."""
    holder = connect(server.dsn)
    holder.cursor().execute(f"BEGIN; {statement}")
    answers = gatherResults([started(counted(server, body)) for body in bodies])
    await until(reactor, lambda: len(lock_waiters(server.dsn)) == len(bodies))
    holder.cursor().execute(end)
    holder.close()
    return await answers


async def test_events_are_stored_in_one_order_whatever_the_order_of_the_batch(server, reactor, no_deadlocks):
    """Batches that stored events in their own order could each wait for the other."""
    first, middle, last = sorted(events(3), key=lambda event: event["id"])
    held = "INSERT INTO analytics_events SELECT '{id}', 's', NULL, 'a', '', now(), now()".format(**middle)
    bodies = [batch(first, middle, last), batch(last, middle, first)]
    answers = await while_held(server, reactor, held, bodies, end="ROLLBACK")
    assert sorted(answers) == [(3, 0, []), (3, 3, [])]


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO analytics_names (name, seen_on) VALUES ('ann', '2026-01-01')", "DELETE FROM analytics_names"],
)
async def test_name_is_kept_when_it_appears_or_is_pruned_at_the_same_time(server, reactor, statement):
    """A batch that waits for another batch with the same new name, or for its pruning, is stored with the name."""
    if statement.startswith("DELETE"):
        server.sql("INSERT INTO analytics_names (name, seen_on) VALUES ('ann', '2026-01-01')")
    bodies = [batch(*events(1), user_id="ann") for _ in range(3)]
    await while_held(server, reactor, statement, bodies, end="COMMIT")
    assert names(server) == {"ann": 3}


async def test_deletion_during_reports_ends_without_deadlock(two, shared_dsn, no_deadlocks):
    """20 players are deleted while batches name them. Earlier events lose the name, and no request waits forever."""
    clients = await gatherResults([started(next(two).player(f"player{n}")) for n in range(20)])
    first = [batch(*events(2), user_id=f"player{n}") for n in range(20)]
    await report_all(two, first)
    at_once = [started(report_all(two, [batch(*events(2), user_id=f"player{n}") for n in range(20)]))]
    await gatherResults([*at_once, *[started(client.delete_account()) for client in clients]])
    reported = [event["id"] for body in first for event in body["events"]]
    query = (
        "SELECT count(*) FROM analytics_events e JOIN analytics_names n ON n.id = name_id WHERE e.id::text = ANY (%s)"
    )
    assert run_sql(shared_dsn, query, (reported,)) == [(0,)]
    assert run_sql(shared_dsn, "SELECT count(*) FROM analytics_events") == [(80,)]


# Pruning of old events.


@pytest.fixture
def database(server, open_database):
    return open_database(size=2, statements=(*STATEMENTS, HOLD))


def keeper(database, reactor, days):
    return make_housekeeping(database, reactor, analytics_days=days, batch=100)


async def test_old_events_and_their_names_are_pruned_in_batches(server, database, reactor):
    """Pruning deletes events older than the given days, one batch at a time, and names without events."""
    await counted(server, batch(*events(3), user_id="new"))
    server.sql(
        "INSERT INTO analytics_events SELECT gen_random_uuid(), 's', NULL, 'old', '{}', now(),"
        " now() - interval '7 days' - n * interval '1 s' FROM generate_series(1, 250) AS n"
    )
    server.sql(
        "INSERT INTO analytics_names (name, seen_on) VALUES ('gone', current_date - 9), ('old', current_date - 6)"
    )
    assert await database.run(analytics.prune, days=7, most=100) == 100
    await keeper(database, reactor, None).prune()
    assert stored(server) == 153
    await keeper(database, reactor, 7).prune()
    assert (stored(server), names(server)) == (3, {"new": 3})
    assert server.sql("SELECT name FROM analytics_names ORDER BY 1") == [("new",), ("old",)]


async def test_pruning_skips_locked_events(server, database):
    """The next round deletes an event that another transaction holds."""
    await counted(server, batch(*events(3)))

    async def hold_one(transaction):
        await transaction.run((HOLD,))
        return await database.run(analytics.prune, days=0, most=10)

    assert await database.transact(hold_one) == 2
    assert await database.run(analytics.prune, days=0, most=10) == 1


# Arbitrary bodies.

odd = st.sampled_from(
    ["\0", "\ud800", "😀" * 20, "x" * 65, "2026-11-20T12:00:00Z", "0001-01-01T00:00:00+02:00", "game_won"]
)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts(max_size=20) | odd | st.uuids().map(str),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts(max_size=5), inner, max_size=4),
    max_leaves=8,
)
strange_events = st.fixed_dictionaries(
    {},
    optional={
        "id": st.uuids().map(str) | documents,
        "event_type": st.just("a") | documents,
        "payload": documents,
        "client_time": st.just(NOW) | documents,
    },
)
strange_batches = st.fixed_dictionaries(
    {"session_id": st.just("s") | documents, "events": st.lists(strange_events | documents, max_size=6)},
    optional={"user_id": documents | odd},
)
bodies = st.binary(max_size=100) | documents.map(lambda value: json.dumps(value).encode()) | st.builds(
    lambda value, escaped: json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass"),
    strange_batches,
    st.booleans(),
)  # fmt: skip


def test_events_of_a_new_name_scan_no_table_that_was_never_analyzed(server):
    """PostgreSQL keeps its plan of a table that it believes to be empty, while a flood fills it."""
    server.sql("TRUNCATE analytics_events")
    server.sql(
        "INSERT INTO analytics_events (id, session_id, event_type, payload, client_time, received_at)"
        " SELECT gen_random_uuid(), 's', 'won', '{}', now(), now() FROM generate_series(1, 1000)"
    )
    ids = [str(uuid4()) for _ in range(50)]
    ran = plan(server.dsn, analytics.STORE, "s", "ann", NOW, ids, ["won"] * 50, ["{}"] * 50, [NOW] * 50)
    assert "Seq Scan" not in ran.text


async def test_any_body_gets_200_or_400(server, full):
    """The receipt lists every event as accepted or as rejected."""
    statuses = {200: 0, 400: 0}
    count = 1_000 if full else 60

    async def send(body):
        answer = await report(server, body)
        statuses[answer.status] += 1
        if answer.status == 200:
            assert answer.json["accepted"] + len(answer.json["rejected"]) == len(json.loads(body)["events"])

    await gather(8, send, examples(bodies, count))
    assert min(statuses.values()) > count / 20, statuses
    assert sum(statuses.values()) >= count
