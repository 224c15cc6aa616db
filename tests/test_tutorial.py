"""The code of docs/clients.md and docs/client.py, run as it is printed there."""

import re
import subprocess
import sys

import pytest

from tests.harness.constants import PATIENCE, ROOT
from tests.harness.entry_points import serving
from tests.harness.processes import clean_environment

PAGE = (ROOT / "docs" / "clients.md").read_text("utf-8")
PACKAGE, HOUR, RUST = (
    re.search(rf"^## {heading}\n(.*?)^## ", PAGE, re.S | re.M)[1]
    for heading in ("The npm package", "Build a client in an hour", "Rust")
)
LIVE = (ROOT / "docs" / "live.md").read_text("utf-8")
WON = ROOT / "docs" / "replays" / "won_draw_one.json"
CARGO = f"""
[package]
name = "tutorial"
version = "0.1.0"
edition = "2024"

[dependencies]
solisync-client = {{ path = "{ROOT}/clients/rust/client" }}
"""
PLAYS = """
fn main() {
    let words: Vec<String> = std::env::args().collect();
    play(&words[1], &std::fs::read_to_string(&words[2]).unwrap()).unwrap();
}
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


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The program of docs/clients.md. The function of docs/live.md compiles with it."""
    place = tmp_path_factory.mktemp("rust")
    (place / "src").mkdir()
    (place / "Cargo.toml").write_text(CARGO)
    (place / "src" / "main.rs").write_text(f"#![allow(dead_code)]\nmod live;\n{code(RUST, 'rust')}{PLAYS}")
    (place / "src" / "live.rs").write_text(code(LIVE, "rust"))
    words = ["cargo", "build", "--quiet"]
    env = clean_environment(RUSTFLAGS="--deny warnings")
    done = subprocess.run(words, env=env, cwd=place, capture_output=True, text=True, timeout=9 * PATIENCE)
    assert done.returncode == 0, done.stderr
    return place / "target" / "debug" / "tutorial"


@pytest.mark.needs("cargo")
@pytest.mark.limit(10 * PATIENCE)
def test_program_with_the_crate_plays(compiled, url, tmp_path):
    """The client counts a win, and another one after a restart."""
    for won in (1, 2):
        assert output("", [compiled, url, WON], tmp_path) == ["verdict verified", f"won {won}"]
