"""Both OpenAPI documents, as linters read them."""

import json
import subprocess

import pytest

from solisync.web.console.app import INTERFACE
from solisync.web.resources.openapi import document
from tests.harness.console import table
from tests.harness.constants import PATIENCE
from tests.harness.error_codes import openapi

# Two schemas have no reference: ErrorCode has the values of a header, and StreamEvent a form that OpenAPI can't express
# (tests/web/test_openapi.py). The summary of a route describes it. Each operator is another contact.
REDOCLY = "extends: [recommended-strict]\nrules:\n  no-unused-components: off\n"
SPECTRAL = """
extends: ["spectral:oas"]
rules:
  oas3-unused-component: off
  operation-description: off
  info-contact: off
"""
LINTERS = {
    "redocly": "npm exec --yes --package=@redocly/cli@2 -- redocly lint --config redocly.yaml openapi.json",
    "spectral": "npm exec --yes --package=@stoplight/spectral-cli@6 -- spectral lint --ruleset spectral.yaml "
    "--fail-severity=hint openapi.json",
}


@pytest.mark.needs("npm")
@pytest.mark.limit(5 * PATIENCE)
@pytest.mark.parametrize("linter", LINTERS)
@pytest.mark.parametrize("interface", ["players", "console"])
def test_linter_finds_nothing(tmp_path, linter, interface):
    """Warnings count as errors."""
    written = openapi() if interface == "players" else document(table(), INTERFACE)
    (tmp_path / "openapi.json").write_text(json.dumps(written))
    (tmp_path / "redocly.yaml").write_text(REDOCLY)
    (tmp_path / "spectral.yaml").write_text(SPECTRAL)
    done = subprocess.run(LINTERS[linter].split(), cwd=tmp_path, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
