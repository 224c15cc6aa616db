"""Replies that are remembered for all sessions (docs/sync.md "How games are counted")."""

from tests.harness.constants import PASSWORD
from tests.harness.devices import Device
from tests.harness.postgres import run_sql
from tests.web.test_counting import GAME, call, log_in, pull, push, register


def played(counts, games):
    device = Device(counts)
    for _ in range(games):
        device.play(GAME)
    return device.counts


def test_pull_of_progress_from_an_older_version_is_remembered(nodes, shared_dsn):
    """A device adopts the reply only after the next push; no game is added twice."""
    register(nodes[0])
    phone, tablet = log_in(nodes[0]), log_in(nodes[1])
    hundred = played(Device().counts, 100)
    push(nodes[1], tablet, hundred)
    run_sql(shared_dsn, "UPDATE sync_states SET payload = payload || ' '")
    told = pull(nodes[0], phone)
    push(nodes[1], tablet, played(hundred, 5))
    push(nodes[0], phone, Device().counts)
    assert push(nodes[0], phone, played(told, 1)).games_played <= 106


def test_pull_with_a_token_of_no_session_is_remembered_for_all(nodes):
    """The token is from before a refresh.

    The device adopts the reply after a push with the newer token; no game is added twice.
    """
    pair = call(nodes[0], "POST", "/api/auth/register", {"username": "ann", "password": PASSWORD})
    tablet = log_in(nodes[1])
    hundred = played(Device().counts, 100)
    push(nodes[1], tablet, hundred)
    newer = call(nodes[0], "POST", "/api/auth/refresh", {"refresh_token": pair["refresh_token"]})["access_token"]
    told = pull(nodes[0], pair["access_token"])
    push(nodes[1], tablet, played(hundred, 5))
    push(nodes[0], newer, Device().counts)
    assert push(nodes[0], newer, played(told, 1)).games_played <= 106
