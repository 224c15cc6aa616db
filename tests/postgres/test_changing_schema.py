"""Migrations, and changes of tables by operators, while nodes serve: no acknowledged push is lost."""

import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.threads import deferToThread

from solisync import service as services
from solisync.errors import FatalError
from solisync.postgres.migrate import Migration, load_migrations, migrate
from tests.harness.concurrency import until
from tests.harness.payloads import progress_of
from tests.harness.players import players
from tests.harness.postgres import run_sql
from tests.harness.service import start
from tests.postgres.old_node import OldNode

MIGRATIONS = load_migrations()
RELEASED = MIGRATIONS[:1]  # the schema of 1.0.0
NEEDED = tuple(each for each in MIGRATIONS if each.number <= 63)  # by a push of this version
EXPANDING = Migration(  # what the next one may look like
    MIGRATIONS[-1].number + 1,
    "9999_expanding.sql",
    "ALTER TABLE sync_states ADD COLUMN later text; CREATE TABLE later (n int)",
)
WINS = 400
OTHERS = 5_000  # players who do nothing, so that to rewrite a table takes a while
REWRITE = "ALTER TABLE sync_states ADD COLUMN updated_at timestamptz NOT NULL DEFAULT clock_timestamp()"


def upto(migration):
    """Return the migrations of a version whose last one is this."""
    return *(each for each in MIGRATIONS if each.number < migration.number), migration


def fill(dsn):
    """Insert many players with progress."""
    run_sql(
        dsn,
        """
        WITH made AS (
            INSERT INTO users (id, username, password_hash, created_at)
            SELECT gen_random_uuid(), 'other' || number, 'none', now() FROM generate_series(1, %s) AS number
            RETURNING id
        )
        INSERT INTO sync_states (user_id, payload) SELECT id, '0' FROM made
        """,
        (OTHERS,),
    )


@pytest.fixture
def old_nodes(empty_database, reactor):
    """Create the schema of version 1.0.0 and let four nodes of that version push there."""
    nodes = []

    async def old_nodes():
        await migrate(reactor, empty_database, RELEASED)
        fill(empty_database)
        for player, _, _ in players(empty_database, 4):
            run_sql(empty_database, "INSERT INTO sync_states (user_id, payload) VALUES (%s, %s)", (player, str(WINS)))
            nodes.append(OldNode(empty_database, player))
        await all_push_on(reactor, nodes)
        return nodes

    yield old_nodes
    for node in nodes:
        node.stop()


async def all_push_on(reactor, nodes):
    """Wait until each node has had some more pushes acknowledged."""
    before = [node.acknowledged for node in nodes]
    await until(reactor, lambda: all(node.acknowledged > n + 4 for node, n in zip(nodes, before, strict=True)))


def check_wins(dsn, nodes):
    """Stop the nodes; check that every acknowledged win is in the database."""
    wins = {node.player: str(WINS + node.stop()) for node in nodes}
    assert dict(run_sql(dsn, "SELECT user_id::text, payload FROM sync_states WHERE payload <> '0'")) == wins


async def test_migrations_lose_no_push_of_an_old_node(reactor, empty_database, old_nodes):
    """Each migration is applied while nodes of version 1.0.0 push: none fails, and every win is there afterwards."""
    nodes = await old_nodes()
    for migration in (*MIGRATIONS[1:], EXPANDING):
        assert await migrate(reactor, empty_database, upto(migration)) == [migration.name]
        await all_push_on(reactor, nodes)
        assert not [node.wrong for node in nodes if node.wrong], migration.name
    check_wins(empty_database, nodes)


async def test_migration_that_rewrites_a_table_is_refused(reactor, empty_database, old_nodes):
    """The migration fails in one line before it commits: a simultaneous push would find the table empty."""
    nodes = await old_nodes()
    rewriting = (*RELEASED, Migration(42, "0042_rewrite.sql", REWRITE))
    with pytest.raises(FatalError, match=r"^solisync: 0042_rewrite\.sql rewrites sync_states, .*nothing was changed$"):
        await migrate(reactor, empty_database, rewriting)
    await all_push_on(reactor, nodes)
    check_wins(empty_database, nodes)
    column = "SELECT 1 FROM information_schema.columns WHERE column_name = 'updated_at'"
    assert run_sql(empty_database, column) == []
    assert await migrate(reactor, empty_database, RELEASED) == []


class Pushing:
    """Players of a service who have won and then push, over and over, from a device without earlier progress."""

    def __init__(self, running):
        self.running = running
        self.players = players(running.dsn, 4)
        self.statuses = {player: [] for player in self.players}
        self._ended = False

    async def save(self):
        """Save what they have won."""
        unlocked = {"id": "first_win", "unlocked": True, "unlock_date": None, "reward_granted": True}
        for player in self.players:
            await self._push(player, progress_of(stats__games_won=WINS, achievements=[unlocked]))

    def begin(self):
        """Begin to push."""
        self.pushing = gatherResults([Deferred.fromCoroutine(self._go_on(player)) for player in self.players])

    async def _push(self, player, payload):
        answer = await self.running.ask("POST", "/api/sync/push", body=payload, bearer=player[2])
        self.statuses[player].append(answer.status)

    async def _go_on(self, player):
        while not self._ended:
            await self._push(player, progress_of())

    async def more(self, reactor):
        """Wait until each player has pushed at least once from the beginning to the end; check that nothing failed."""
        before = {player: len(statuses) for player, statuses in self.statuses.items()}
        await until(reactor, lambda: all(len(self.statuses[player]) > count + 1 for player, count in before.items()))
        self.check()

    def check(self):
        """Check that nothing has failed so far."""
        assert {status for statuses in self.statuses.values() for status in statuses} == {200}

    async def end(self, reactor):
        """Wait for some more pushes; check that nothing failed and nothing is lost."""
        await self.more(reactor)
        self._ended = True
        await self.pushing
        self.check()
        for _, _, token in self.players:
            merged = (await self.running.ask("GET", "/api/sync/pull", bearer=token)).json["merged"]
            assert (merged["stats"]["games_won"], len(merged["achievements"])) == (WINS, 1)


async def test_table_rewritten_by_hand_loses_no_win(reactor, empty_database):
    """An operator's ALTER TABLE may rewrite the progress of all players while they push."""
    running = await start(reactor, empty_database)
    try:
        fill(empty_database)
        pushing = Pushing(running)
        await pushing.save()
        pushing.begin()
        for statement in (REWRITE, "ALTER TABLE sync_states DROP COLUMN updated_at") * 3:
            await deferToThread(run_sql, empty_database, statement)
            await pushing.more(reactor)  # else three statements in a row could meet the three attempts of one push
        await pushing.end(reactor)
    finally:
        await running.service.stopService()


async def test_migrations_lose_no_push_of_this_version(reactor, empty_database, monkeypatch):
    """Each migration is applied while a service on the schema before it serves."""
    monkeypatch.setattr(services, "load_migrations", lambda: NEEDED)
    running = await start(reactor, empty_database)
    try:
        fill(empty_database)
        pushing = Pushing(running)
        await pushing.save()
        assert [500] not in pushing.statuses.values(), "a push of this version needs more migrations"
        pushing.begin()
        for migration in (*MIGRATIONS[len(NEEDED) :], EXPANDING):
            await migrate(reactor, empty_database, upto(migration))
            await pushing.more(reactor)
        await pushing.end(reactor)
    finally:
        await running.service.stopService()
