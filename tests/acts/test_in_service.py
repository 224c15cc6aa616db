"""Acts over the connections of the service: every statement of an act is prepared there (solisync.storage)."""

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from solisync.acts import players, replays, shown
from solisync.acts.act import Acting
from solisync.acts.table import ACTS
from solisync.events.notices import BoardsChanged, ReplayStored, SessionsEnded
from solisync.postgres.database import Database
from solisync.storage import STATEMENTS
from solisync.storage.acts import Actor
from tests.harness.footprint import search
from tests.harness.payloads import IMAGES, replay

# Each act with all that can be given to it, in an order in which each changes something.
EACH = (
    (shown.NAME, {"display_name": "Anna"}),
    (shown.HIDE, {"lock": True}),
    (shown.SHOW, {}),
    (shown.REMOVE_AVATAR, {}),
    (players.UNLOCK, {}),
    (players.LOCK, {}),
    (players.END_SESSIONS, {"access": True}),
    (players.SUSPEND, {"message": "stop"}),
    (players.SUSPEND, {"message": "stop it"}),
    (shown.HIDE, {}),
    (players.UNSUSPEND, {}),
    (shown.SHOW, {}),
    (players.SUSPEND, {}),
    (players.UNSUSPEND, {}),
    (players.LINK, {"token_digest": b"x" * 32, "password_hash": "$2b$04$" + "x" * 53}),
    (replays.UNLIST, {}),
    (replays.LIST_AGAIN, {}),
    (replays.CHECK, {"again": True}),
    (replays.DELETE, {}),
    (players.RENAME, {"username": "anna"}),
    (players.DELETE, {}),
)


@pytest.fixture
def told():
    """All notices so far."""
    return []


@pytest.fixture
def acting(server, reactor, told):
    """Acts as the service performs them."""
    database = Database(reactor=reactor, size=1, statements=STATEMENTS)
    database.open(server.dsn)
    publish = lambda *notices: told.append(notices)  # noqa: E731
    yield Acting(database=database, publish=publish, by=Actor("admin", "annie"))
    pytest_twisted.blockon(Deferred.fromCoroutine(database.close(1)))


async def test_the_service_can_perform_every_act(server, acting, told):
    """Each changes something, and the processes are told of each; once the player is deleted, no record names them."""
    assert {act for act, _ in EACH} == {*ACTS}
    client = await server.player("ann")
    user_id = (await client.me()).id
    await client.opt_in("ann")
    await client.upload_avatar(IMAGES["png"], "image/png")
    replay_id = await client.upload_replay(replay())
    for act, given in EACH:
        target = user_id if act.target == "player" else replay_id
        assert (await acting.perform(act, target, **given)).changed, act.name
    concerned = [SessionsEnded(user_id) if act.target == "player" else ReplayStored() for act, _ in EACH]
    assert told == [(each, BoardsChanged()) for each in concerned]
    assert server.sql("SELECT array_agg(act ORDER BY id) FROM admin_acts") == [([act.name for act, _ in EACH],)]
    assert search(server.dsn, (user_id, replay_id, "ann", "Anna")) == {("admin_acts", "actor")}
