"""Suspensions at any moment, on two nodes whose clocks differ."""

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random

import bcrypt
import pytest
import pytest_twisted
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.acts import players as acts
from solisync.acts.act import Acting
from solisync.client import ApiError
from solisync.errors import NotFound
from solisync.events.notices import command_notices
from solisync.rules.accounts import TokenPair
from solisync.storage.operators.acts import Actor
from solisync.web.shared_cache import SECONDS
from tests.harness.boards import check
from tests.harness.concurrency import gather
from tests.harness.constants import PASSWORD
from tests.harness.payloads import progress_of, replay
from tests.harness.players import players
from tests.harness.service import refused, start

OTHER_CLOCK = timedelta(seconds=30)


@pytest.fixture
def ahead(reactor, server):
    """A second node, whose clock is fast."""
    now = lambda: datetime.now(UTC) + OTHER_CLOCK  # noqa: E731
    running = pytest_twisted.blockon(Deferred.fromCoroutine(start(reactor, server.dsn, now=now)))
    yield running
    pytest_twisted.blockon(running.service.stopService())


@pytest.fixture
def acting(server, open_database):
    """An operator with several connections."""
    database = open_database(size=4, statements=())
    return Acting(database=database, publish=command_notices(database), by=Actor("shell", "operator"))


class Player:
    """A player who sends all kinds of requests together, from several clients on two nodes."""

    def __init__(self, nodes, user_id, name, tokens):
        self.id, self.name = user_id, name
        self.nodes = nodes
        self.tokens = [tokens]
        self.replay_id = None

    def client(self, number, *, signed_in=True):
        """Return a client on one of the nodes."""
        client = self.nodes[number % len(self.nodes)].client()
        client.tokens = self.tokens[0] if signed_in else None
        return client

    async def attempt(self, outcomes, what, work):
        """Call the work; count its outcome, and keep tokens."""
        try:
            result = await work()
        except ApiError as error:
            outcomes[what, error.status] += 1
        else:
            outcomes[what, 200] += 1
            if isinstance(result, TokenPair):
                self.tokens.append(result)


async def test_suspension_takes_effect_at_any_moment(server, ahead, acting, reactor, no_deadlocks, full, figure):
    """After a second all requests of the player are refused, and no list shows the player.

    Lifting it restores what was visible.
    """
    random, outcomes = Random(1), Counter()
    count = 1_000 if full else 20
    made = players(server.dsn, count)
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    server.sql("UPDATE users SET password_hash = %s", (hashed,))
    names = dict(server.sql("SELECT id::text, username FROM users"))
    everybody = [
        Player([server, ahead], user_id, names[user_id], TokenPair(access, refresh))
        for user_id, refresh, access in made
    ]

    async def race(item):
        position, player = item
        first = player.client(0)
        if random.random() < 0.5:
            await first.opt_in(player.name)
        player.replay_id = await first.upload_replay(replay())
        payload = (await first.pull()).merged

        async def checked():
            await deferToThread(check, server.dsn, player.replay_id, 700)

        async def suspended():
            await acting.perform(acts.suspend, player.id, message="stop")

        work = {
            "suspend": suspended,
            "check": checked,
            "login": lambda: player.client(1, signed_in=False).login(player.name, PASSWORD),
            "refresh": lambda: player.client(0).refresh(),
            "push": lambda: player.client(1).push(payload),
            "upload": lambda: player.client(0).upload_replay(replay(moves=1)),
            "opt in": lambda: player.client(1).opt_in(player.name),
        }
        # Some end before the next begins, and others are still running: so however long each takes, it may come first.
        # A few get all of it in turn, with the suspension first or last: so there is something of both on any machine.
        running, in_turn = [], position < count // 5
        order = random.sample([*work], len(work))
        if in_turn:
            order.sort(key=lambda what: (what == "suspend") is (position % 2 == 0))
        for what in order:
            running.append(Deferred.fromCoroutine(player.attempt(outcomes, what, work[what])))
            if in_turn or random.random() < 0.3:
                await running[-1]
            else:
                await deferLater(reactor, random.uniform(0, 0.01))
        await gatherResults(running, consumeErrors=True)

    await gather(8, race, enumerate(everybody))
    await deferLater(reactor, SECONDS)
    print(outcomes)
    assert {status for _, status in outcomes} <= {200, 401, 403}
    assert outcomes["suspend", 200] == outcomes["check", 200] == count
    for what in ("login", "refresh"):  # which the database decides immediately: else there was no race
        assert outcomes[what, 200] >= count // 10 <= count - outcomes[what, 200], (what, outcomes)

    async def out(player):
        for number, pair in enumerate(player.tokens):
            client = player.client(number)
            client.tokens = pair
            for call in (client.me, client.delete_account):
                assert (await refused(call()))[0] == 403
            assert await refused(client.refresh()) == (401, "unauthorized")

    await gather(8, out, everybody)
    assert server.sql("SELECT count(*) FROM users JOIN suspensions ON user_id = id") == [(count,)]
    assert server.sql("SELECT 1 FROM refresh_tokens") == []
    assert server.sql("SELECT 1 FROM leaderboard WHERE visible") == []
    assert server.sql("SELECT 1 FROM board_evidence WHERE ranked") == []
    wanted = dict(server.sql("SELECT user_id::text, was_visible FROM suspensions"))
    assert set(wanted.values()) == {True, False}

    async def lifted(player):
        await acting.perform(acts.unsuspend, player.id)

    await gather(4, lifted, everybody)
    visible = dict(server.sql("SELECT user_id::text, visible FROM leaderboard"))
    assert {user_id: visible.get(user_id, False) for user_id in wanted} == wanted
    ranked = {user_id for (user_id,) in server.sql("SELECT user_id::text FROM board_evidence WHERE ranked")}
    assert ranked == {user_id for user_id, is_visible in wanted.items() if is_visible}
    await deferLater(reactor, SECONDS)
    for player in everybody[:: count // 10]:
        for number, node in enumerate(player.nodes):
            client = player.client(number, signed_in=False)
            await client.login(player.name, PASSWORD)
            assert (await client.me()).id == player.id, node
    figure(f"{count} players suspended in the middle of {sum(outcomes.values())} requests")


async def test_acts_of_two_operators_are_recorded_as_carried_out(server, acting, reactor, no_deadlocks):
    """The acts are renaming, suspending, lifting, deleting and locking.

    During them the player pushes, opts in and uploads, and gets no error of the service.
    """
    random, statuses = Random(2), set()

    async def attempt(act, player, **given):
        await deferLater(reactor, random.uniform(0, 0.01))
        with suppress(NotFound):
            return (await acting.perform(act, player, **given)).changed
        return None

    async def play(user_id, access):
        client = server.client()
        client.tokens = TokenPair(access, "")
        for work in (lambda: client.opt_in(user_id[:8]), lambda: client.upload_replay(replay())):
            try:
                await work()
            except ApiError as error:
                statuses.add(error.status)
        answer = await server.ask("POST", "/api/sync/push", body=progress_of(), bearer=access)
        statuses.add(answer.status)

    async def race(made):
        player, _, access = made
        playing = Deferred.fromCoroutine(play(player, access))
        await gatherResults(
            [
                Deferred.fromCoroutine(attempt(acts.rename, player, username=f"one_{player[:8]}")),
                Deferred.fromCoroutine(attempt(acts.rename, player, username=f"two_{player[:8]}")),
                Deferred.fromCoroutine(attempt(acts.suspend, player)),
                Deferred.fromCoroutine(attempt(acts.suspend, player)),
                Deferred.fromCoroutine(attempt(acts.unsuspend, player)),
            ]
        )
        rows = server.sql("SELECT act FROM admin_acts JOIN admin_notes ON act_id = id WHERE user_id = %s", (player,))
        done = Counter(act for (act,) in rows)
        ((suspended,),) = server.sql("SELECT count(*) FROM suspensions WHERE user_id = %s", (player,))
        assert done["rename"] == 2
        assert done["suspend"] - done["unsuspend"] == suspended
        outcomes = await gatherResults(
            [Deferred.fromCoroutine(attempt(act, player)) for act in (acts.delete, acts.lock, acts.delete)]
        )
        assert sorted(map(str, (outcomes[0], outcomes[2]))) == ["None", "True"]
        assert outcomes[1] in (True, None)
        await playing

    await gather(4, race, players(server.dsn, 20))
    assert statuses <= {200, 401, 403, 404}
    assert server.sql("SELECT count(*) FROM admin_acts WHERE act = 'delete'") == [(20,)]
