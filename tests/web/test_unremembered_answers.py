"""Answers that no session of their own remembers (docs/sync.md "How games are counted")."""

from tests.harness.constants import PASSWORD
from tests.harness.devices import Device
from tests.harness.postgres import run_sql
from tests.web.test_counting import GAME, call, log_in, pull, push, register


def played(counts, games):
    device = Device(counts)
    for _ in range(games):
        device.play(GAME)
    return device.counts


def test_what_something_else_has_stored_is_remembered_when_it_is_told(nodes, shared_dsn):
    """A pull of a payload that an older version stored, taken up only after the next push, adds nothing twice."""
    register(nodes[0])
    phone, tablet = log_in(nodes[0]), log_in(nodes[1])
    hundred = played(Device().counts, 100)
    push(nodes[1], tablet, hundred)
    run_sql(shared_dsn, "UPDATE sync_states SET payload = payload || ' '")
    told = pull(nodes[0], phone)
    push(nodes[1], tablet, played(hundred, 5))
    push(nodes[0], phone, Device().counts)
    assert push(nodes[0], phone, played(told, 1)).games_played <= 106


def test_what_a_token_of_no_session_is_told_is_remembered_for_all(nodes):
    """A pull with the token from before a refresh, taken up after a push with the newer one, adds nothing twice."""
    pair = call(nodes[0], "POST", "/api/auth/register", {"username": "ann", "password": PASSWORD})
    tablet = log_in(nodes[1])
    hundred = played(Device().counts, 100)
    push(nodes[1], tablet, hundred)
    newer = call(nodes[0], "POST", "/api/auth/refresh", {"refresh_token": pair["refresh_token"]})["access_token"]
    told = pull(nodes[0], pair["access_token"])
    push(nodes[1], tablet, played(hundred, 5))
    push(nodes[0], newer, Device().counts)
    assert push(nodes[0], newer, played(told, 1)).games_played <= 106
