"""docs/getting-started.md, run exactly as documented."""

import re
import subprocess

import pytest

from tests.harness.constants import PATIENCE, ROOT
from tests.harness.processes import clean_environment, free_port

PAGE = (ROOT / "docs" / "getting-started.md").read_text("utf-8")


def as_pattern(shown):
    """Return a pattern for a line of output, where "…" matches anything."""
    return ".*".join(map(re.escape, shown.split("…")))


@pytest.mark.long
@pytest.mark.needs("bash", "curl", "openssl")
def test_commands_of_the_page_print_the_documented_output(place):
    """All commands run in this order, in one shell."""
    blocks = re.findall(r"^    \$ (.+)\n((?:    (?!\$ ).+\n)*)", PAGE, re.M)
    assert len(blocks) > 15
    checkout = place / "checkout"
    subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True)
    script = ["set -emo pipefail", "trap 'kill %1 2>/dev/null || true' EXIT"]  # -m: job control, for %1
    for number, (command, _) in enumerate(blocks):
        script += [rf"printf '\n--- {number}\n'", command]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script).replace("8080", str(free_port())).replace("9100", str(free_port()))],
        cwd=checkout,
        env=clean_environment(HOME=place, PIP_DISABLE_PIP_VERSION_CHECK="1"),
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = re.split(r"^--- \d+\n", done.stdout, flags=re.M)[1:]
    for (command, shown), output in zip(blocks, outputs, strict=True):
        expected = "\n".join(line.strip() for line in shown.splitlines())
        if expected:
            assert re.fullmatch(as_pattern(expected), output.strip(), re.S), (command, output)
