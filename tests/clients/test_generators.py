"""Clients that generators make from the OpenAPI document (docs/clients.md "Generated clients")."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.harness.constants import PATIENCE, ROOT
from tests.harness.error_codes import openapi
from tests.harness.processes import clean_environment

ALL = os.environ.get("GENERATORS") == "all"
JAR = "org.openapitools:openapi-generator-cli:7.17.0"
OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
GO = ("go mod tidy", "go build ./...")
TSC = "npm exec --yes --package=typescript@5 -- tsc --strict --noEmit --skipLibCheck --target es2020 --lib es2020,dom"
BUNDLED = "--module esnext --moduleResolution bundler"
IMPORT_ALL = """
import importlib, pkgutil, openapi_client
for module in pkgutil.walk_packages(openapi_client.__path__, "openapi_client."):
    importlib.import_module(module.name)
"""


def generated(language, options=""):
    """The command by which openapi-generator makes a client in the directory `made`."""
    return (
        f"java -jar generator/openapi-generator-cli-7.17.0.jar generate -i openapi.json -g {language} -o made {options}"
    )


# For each generator of the page the programs that it needs, and commands, each with the directory in which it runs.
QUICK = {
    "oapi-codegen": (
        ("go",),
        (
            (".", "go mod init api"),
            (".", f"go run {OAPI_CODEGEN} -package api -generate types,client -o api.go openapi.json"),
            *((".", command) for command in GO),
        ),
    ),
}
SLOW = {
    "openapi-generator, Go": (
        ("java", "mvn", "go"),
        (
            (".", generated("go", "--additional-properties=packageName=api")),
            *(("made", command) for command in GO),
        ),
    ),
    "openapi-generator, Rust": (
        ("java", "mvn", "cargo"),
        ((".", generated("rust")), ("made", "cargo check --quiet")),
    ),
    "openapi-generator, TypeScript": (
        ("java", "mvn", "npm"),
        ((".", generated("typescript-fetch")), ("made", f"{TSC} {BUNDLED} index.ts")),
    ),
    "openapi-generator, Python": (
        ("java", "mvn"),
        (
            (".", generated("python")),
            (".", f"{sys.executable} -m venv venv"),
            (".", "venv/bin/pip install --quiet --disable-pip-version-check ./made"),
            (".", "venv/bin/python import_all.py"),
        ),
    ),
    "openapi-generator, Java": (
        ("java", "mvn"),
        ((".", generated("java")), ("made", "mvn --quiet --batch-mode -DskipTests compile")),
    ),
    "orval": (
        ("npm",),
        (
            (".", "npm exec --yes --package=orval@7 -- orval --input openapi.json --output made.ts --client fetch"),
            (".", f"{TSC} {BUNDLED} made.ts"),
        ),
    ),
}
TRIED_ELSEWHERE = {"openapi-typescript", "openapi-python-client", "datamodel-codegen", "ogen", "progenitor"}


def run(command, directory):
    """Run a command that succeeds."""
    done = subprocess.run(
        command.split(), cwd=directory, env=clean_environment(), capture_output=True, text=True, timeout=5 * PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def generator(tmp_path_factory):
    """Return the directory with openapi-generator, which is fetched once."""
    place = tmp_path_factory.mktemp("generator")
    run(f"mvn --quiet --batch-mode dependency:copy -Dartifact={JAR} -DoutputDirectory={place}", place)
    return place


@pytest.mark.needs("npm")
@pytest.mark.limit(10 * PATIENCE)
@pytest.mark.parametrize("name", [*QUICK, *(SLOW if ALL else ())])
def test_generated_client_compiles(name, request, tmp_path):
    """`make test-clients GENERATORS=all` tries all generators."""
    programs, commands = (QUICK | SLOW)[name]
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if "mvn" in programs:
        (tmp_path / "generator").symlink_to(request.getfixturevalue("generator"))
    (tmp_path / "openapi.json").write_text(json.dumps(openapi()))
    (tmp_path / "import_all.py").write_text(IMPORT_ALL)
    for directory, command in commands:
        run(command, tmp_path / directory)


def test_page_lists_the_generators_that_are_tried():
    """Its table has each generator, with the result."""
    page = (ROOT / "docs" / "clients.md").read_text("utf-8").partition("## Generated clients")[2].partition("\n## ")[0]
    assert {*re.findall(r"^\| ([^|]+?) \|.*\|$", page, re.M)} - {"Generator"} == {*QUICK, *SLOW, *TRIED_ELSEWHERE}
