"""Clients generated from the OpenAPI document (docs/clients.md "Generated clients")."""

import json
import re
import subprocess

import pytest

from tests.harness.constants import PATIENCE, ROOT
from tests.harness.error_codes import openapi


@pytest.mark.needs("openapi-python-client")
def test_generated_client_has_every_route(tmp_path):
    """openapi-python-client, with the settings of docs/clients.md, warns of nothing and writes each function."""
    page = (ROOT / "docs" / "clients.md").read_text("utf-8")
    (settings,) = re.findall(r"```yaml\n(content_type_overrides:\n.+?)```", page, re.S)
    (tmp_path / "settings.yaml").write_text(f"{settings}post_hooks: []\n")  # which would want ruff
    (tmp_path / "openapi.json").write_text(json.dumps(openapi()))
    words = ["--path", "openapi.json", "--config", "settings.yaml", "--meta", "none", "--output-path", "made"]
    program = ["openapi-python-client", "generate", "--fail-on-warning", *words]
    made = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=5 * PATIENCE)
    assert made.returncode == 0, made.stdout + made.stderr
    wanted = {
        f"{tag}/{operation['operationId']}.py"
        for path in openapi()["paths"].values()
        for operation in path.values()
        for tag in operation["tags"]
    }
    api = tmp_path / "made" / "api"
    assert {str(file.relative_to(api)) for file in api.glob("*/*.py") if file.name != "__init__.py"} == wanted
