"""The code of docs/clients.md and docs/client.py, run as it is printed there."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.harness.constants import PATIENCE, ROOT
from tests.harness.entry_points import serving
from tests.harness.http_requests import new_address
from tests.harness.processes import clean_environment

PAGE = (ROOT / "docs" / "clients.md").read_text("utf-8")
PACKAGE, HOUR, DEVICE, RUST = (
    re.search(rf"^## {heading}\n(.*?)^## ", PAGE, re.S | re.M)[1]
    for heading in ("The npm package", "Build a client in an hour", "On the device", "Rust")
)
LIVE = (ROOT / "docs" / "live.md").read_text("utf-8")
WON = ROOT / "docs" / "replays" / "won_draw_one.json"
CARGO = """
[package]
name = "tutorial"
version = "0.1.0"
edition = "2021"

[dependencies]
serde = { version = "1", features = ["derive"] }
serde_json = "1"
ureq = { version = "3.5", default-features = false, features = ["json"] }
"""


def code(text, language):
    """Return all code of a language, in its order."""
    return "\n".join(re.findall(rf"```{language}\n(.+?)```", text, re.S))


@pytest.fixture
def url(reactor, shared_dsn, logs):
    """The address of a service that checks replays."""
    with serving(reactor, logs, shared_dsn, SOLISYNC_CHECKERS="1") as service:
        yield service.url


def output(program, words, directory):
    """Run a program; return the lines of its output, with the id of a replay replaced."""
    (directory / "program").write_text(program)
    env = clean_environment()
    done = subprocess.run(words, env=env, cwd=directory, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return re.sub(r"uploaded \S+", "uploaded …", done.stdout).splitlines()


def printed():
    """Return the lines that the page promises."""
    lines = re.search(r"^This program and client.py print\n\n(.+?)\n\n", HOUR, re.S | re.M)[1]
    return lines.replace("    ", "").splitlines()


def test_tutorial_runs_in_python(url, tmp_path):
    """docs/client.py has the steps of the page."""
    program = (ROOT / "docs" / "client.py").read_text("utf-8").replace("http://127.0.0.1:8080", url)
    assert output(program, [sys.executable, "program", str(WON)], tmp_path) == printed()


@pytest.mark.needs("node")
def test_tutorial_runs_in_javascript(url, tmp_path):
    """The parts make a program that plays."""
    program = code(HOUR, "javascript") + f"\nawait main({WON.read_text('utf-8')});\n"
    program = program.replace("http://127.0.0.1:8080", url)
    assert output(program, ["node", "--input-type=module", "--eval", program], tmp_path) == printed()


@pytest.mark.needs("node")
def test_program_with_the_npm_package_plays(url, tmp_path):
    """The client counts a win, and another one after a restart."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "solisync").symlink_to(ROOT / "clients" / "javascript")
    program = code(PACKAGE, "javascript") + f"\nawait play({url!r}, {WON.read_text('utf-8')});\n"
    for won in (1, 2):
        printed = output(program, ["node", "--input-type=module", "--eval", program], tmp_path)
        assert printed == ["verdict verified", f"won {won}"]


async def test_example_of_a_device_plays(server, tmp_path, monkeypatch, capsys):
    """The device counts a game, and another one after a restart."""
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code(DEVICE, "python"), names)
    device, address = names["Device"], new_address()
    names["Device"] = lambda *given: device(*given, headers={"X-Forwarded-For": address})
    for _ in range(2):
        await names["play"](server.url, json.loads(WON.read_text("utf-8")))
    assert re.findall(r"^won (\d)$", capsys.readouterr().out, re.M) == ["1", "2"]


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """The directory of what cargo has compiled, which the examples share."""
    return tmp_path_factory.mktemp("target")


@pytest.mark.needs("cargo")
@pytest.mark.parametrize("text", [RUST, LIVE], ids=["requests", "events"])
def test_example_in_rust_compiles(text, target, tmp_path):
    """The compiler is given the newest ureq 3."""
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text(CARGO)
    unused = "#![allow(dead_code)]\n"
    (tmp_path / "src" / "lib.rs").write_text(unused + code(text, "rust"))
    words = ["cargo", "check", "--quiet"]
    env = os.environ | {"CARGO_TARGET_DIR": str(target)}
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=5 * PATIENCE)
    assert done.returncode == 0, done.stderr
