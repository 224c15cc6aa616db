"""The clients of this repository lose no game, count none twice and end no login (clients/conformance/README.md)."""

import os
import re
import subprocess
import sys

import pytest

from tests.harness.constants import PATIENCE, ROOT

DRIVERS = {
    "python": [sys.executable, "-m", "solisync.client.driver"],
    "node": ["node", "clients/javascript/driver.js"],
    "chromium": [sys.executable, "-m", "clients.conformance.chromium"],
}
LEAVE_OUT = {"python": {"share a store", "keys"}, "node": set(), "chromium": {"share a store"}}  # what clients can't do
MADE_UP = int(os.environ.get("SCENARIOS") or 50)  # scenarios by chance
LIMIT_SECONDS = 5 * PATIENCE + 10 * MADE_UP

pytestmark = pytest.mark.long


def conform(options, program):
    """Run scenarios; return whether all went right, and the printed lines, the last of which has the sums."""
    words = [sys.executable, "-m", "clients.conformance", *options, "--", *program]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS)
    return done.returncode == 0, done.stdout.splitlines()


@pytest.mark.parametrize("name", DRIVERS)
def test_client_passes_all_scenarios(name, figure):
    """Clients leave out the scenarios that need what they can't do, and no others."""
    passed, lines = conform([], DRIVERS[name])
    assert passed, "\n".join(lines)
    left_out = [line for line in lines if line.startswith("left out")]
    assert all(any(ability in line for ability in LEAVE_OUT[name]) for line in left_out)
    assert all(any(ability in line for line in left_out) for ability in LEAVE_OUT[name])
    figure(f"{name}: {lines[-1]}")


@pytest.mark.parametrize("name", DRIVERS)
def test_client_passes_scenarios_by_chance(name, figure):
    """`make test-clients SCENARIOS=1000` runs more of them."""
    passed, lines = conform(["--random", str(MADE_UP)], DRIVERS[name])
    assert passed, "\n".join(lines)
    figure(f"{name}: {lines[-1]}")


FORGETFUL = """
import solisync.client.device as device
import solisync.client.driver as driver

push = device.Device._push

async def forgetful(self, journal):
    try:
        return await push(self, journal)
    except Exception:
        journal.sent = None
        raise

device.Device._push = forgetful
driver.main()
"""


def test_suite_finds_a_client_that_counts_twice():
    """A client that forgets what it has sent adds its games again to an answer that includes them."""
    passed, lines = conform(["--only", "the answer of a push is lost"], [sys.executable, "-c", FORGETFUL])
    assert not passed
    assert re.search(r" [1-9]\d* doubled", lines[-1]), lines
