"""The clients of this repository lose no game, count none twice and end no login (clients/conformance/README.md)."""

import os
import re
import subprocess
import sys

import pytest

from tests.harness.constants import PATIENCE, ROOT

DRIVERS = {
    "python": [sys.executable, "-m", "clients.conformance.reference"],
    "node": ["node", "clients/javascript/driver.js"],
    "chromium": [sys.executable, "-m", "clients.conformance.chromium"],
}
LEAVE_OUT = {
    "python": {"share a store", "keys", "verdict", "event"},
    "node": set(),
    "chromium": {"share a store"},
}  # what clients can't do
MADE_UP = int(os.environ.get("SCENARIOS") or 50)  # scenarios by chance
LIMIT_SECONDS = 5 * PATIENCE + 10 * MADE_UP


def conform(options, program):
    """Run scenarios; return whether all went right, and the printed lines, the last of which has the sums."""
    words = [sys.executable, "-m", "clients.conformance", *options, "--", *program]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS)
    return done.returncode == 0, done.stdout.splitlines()


def test_client_of_the_suite_passes_the_short_form():
    passed, lines = conform(["--short"], DRIVERS["python"])
    assert passed, "\n".join(lines)
    assert re.match(r"1\d scenarios: 1\d ok", lines[-1]), lines


@pytest.mark.long
@pytest.mark.parametrize("name", DRIVERS)
def test_client_passes_all_scenarios(name, figure):
    """Clients leave out the scenarios that need what they can't do, and no others."""
    passed, lines = conform([], DRIVERS[name])
    assert passed, "\n".join(lines)
    left_out = [line for line in lines if line.startswith("left out")]
    assert all(any(ability in line for ability in LEAVE_OUT[name]) for line in left_out)
    assert all(any(ability in line for line in left_out) for ability in LEAVE_OUT[name])
    figure(f"{name}: {lines[-1]}")


@pytest.mark.long
@pytest.mark.parametrize("name", DRIVERS)
def test_client_passes_scenarios_by_chance(name, figure):
    """`make test-clients SCENARIOS=1000` runs more of them."""
    passed, lines = conform(["--random", str(MADE_UP)], DRIVERS[name])
    assert passed, "\n".join(lines)
    figure(f"{name}: {lines[-1]}")


WRONG = """
from clients.conformance import reference

class Wrong(reference.Device):
    def {method}

reference.Device = Wrong
reference.main()
"""
DOUBLING = """_ask(self, method, path, body=None):
        for game in (body or {}).get("games", []):
            game["game_id"] = str(reference.uuid4())
        return super()._ask(method, path, body)
"""
LOSING = """_take(self, answer, sent):
        super()._take(answer, [*self._mine["games"]])
"""


def wrong(method):
    """The words that run a driver whose client has another method."""
    return [sys.executable, "-c", WRONG.replace("{method}", method)]


@pytest.mark.long
def test_suite_finds_a_client_that_counts_twice():
    """A client that sends a game under another id each time counts it again after a lost answer."""
    passed, lines = conform(["--only", "the answer about games is lost, and"], wrong(DOUBLING))
    assert not passed
    assert re.search(r" [1-9]\d* doubled", lines[-1]), lines


@pytest.mark.long
def test_suite_finds_a_client_that_loses_games():
    """A client that takes each answer for one about all its games loses those that end during the request."""
    passed, lines = conform(["--only", "games are finished while others are on their way"], wrong(LOSING))
    assert not passed
    assert "games_played is 1 instead of 4" in lines[0], lines
