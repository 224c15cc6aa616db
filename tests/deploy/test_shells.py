"""Completion in real shells."""

import os
import subprocess

import pytest

from tests.deploy.programs import optional
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import SOLISYNC
from tests.harness.processes import run

# Completes as bash does on TAB, and prints each result on a line.
TAB = """
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
"$(complete -p solisync | sed 's/.* -F \\([^ ]*\\) .*/\\1/')" solisync "${@: -1}" "${@: -2:1}"
echo "${COMPREPLY[*]}"
"""


@pytest.mark.needs("bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["--work"], "--workers"),
        (["--print-completion", ""], "bash zsh fish tcsh"),
        (["us"], "users"),
        (["users", "delete", "--y"], "--yes"),
        (["--data-dir", "{place}/d"], "{place}/directory"),
        (["--jwt-secret-file", "{place}/f"], "{place}/file"),
    ],
)
def test_bash_completes_options_commands_and_paths(place, words, completed):
    script = place / "solisync"
    script.write_text("\n".join(run(*SOLISYNC, "--print-completion", "bash").out))
    (place / "directory").mkdir()
    (place / "file").write_text("")
    typed = [word.format(place=place) for word in words]
    done = subprocess.run(
        ["bash", "--norc", "-c", TAB, "bash", os.fspath(script), "solisync", *typed],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.stdout.strip(), done.stderr) == (completed.format(place=place), "")


@pytest.mark.parametrize("shell", [pytest.param(name, marks=optional(name)) for name in ("zsh", "fish", "tcsh")])
def test_other_shells_accept_their_scripts(place, shell):
    """The grammar has no errors."""
    script = place / "solisync"
    script.write_text("\n".join(run(*SOLISYNC, "--print-completion", shell).out))
    done = subprocess.run([shell, "-n", script], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
