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
}
MADE_UP = int(os.environ.get("SCENARIOS") or 50)  # scenarios by chance

pytestmark = pytest.mark.long


def conform(options, program):
    """Run scenarios; return the exit status and the printed lines."""
    words = [sys.executable, "-m", "clients.conformance", *options, "--", *program]
    seconds = 5 * PATIENCE + 3 * MADE_UP
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    return done.returncode, done.stdout.splitlines() + done.stderr.splitlines()


@pytest.mark.parametrize("name", DRIVERS)
def test_client_passes_all_scenarios(name, figure):
    """None is left out."""
    status, lines = conform([], DRIVERS[name])
    assert status == 0, "\n".join(lines)
    assert not [line for line in lines if line.startswith("left out")]
    figure(f"{name}: {lines[-1]}")


@pytest.mark.parametrize("name", DRIVERS)
def test_client_passes_scenarios_by_chance(name, figure):
    """`make test-clients SCENARIOS=1000` runs more of them."""
    status, lines = conform(["--random", str(MADE_UP)], DRIVERS[name])
    assert status == 0, "\n".join(lines)
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
    status, lines = conform(["--only", "the answer of a push is lost"], [sys.executable, "-c", FORGETFUL])
    assert status == 1
    assert re.search(r" [1-9]\d* doubled", lines[-1]), lines
