"""`python -m solisync.klondike` checks a replay by hand."""

import io
import json
import subprocess
import sys

import pytest

from solisync.klondike import Reason
from solisync.klondike.__main__ import EXPLANATIONS, main
from tests.klondike.vectors import encoded, wins

LITERAL = wins("2026-05-19", undo=False)[0]["replay"]
UNDONE = wins("2026-05-19", undo=True)[0]["replay"]


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command with a replay, or bytes, at its standard input; return exit status, output and errors."""

    def run(replay, *arguments):
        body = replay if isinstance(replay, bytes) else encoded(replay)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body)))
        status = main([*arguments, "-"])
        return status, *capsys.readouterr()

    return run


def test_verdict_sets_the_exit_status(run):
    """The command prints one line; 0 is verified, 1 refuted, 3 undecided, 4 unreadable."""
    cases = [
        (0, "verified: won with ", LITERAL, ()),
        (0, "undos: 2)", UNDONE, ()),
        (1, "(score)", LITERAL | {"final_score": -5}, ()),
        (3, "only a search for undos can decide", UNDONE, ("--literally",)),
        (3, "(budget)", UNDONE, ("--seconds", "0")),
        (4, "(shape)", b"[]", ()),
    ]
    for status, words, replay, options in cases:
        left, out, err = run(replay, *options)
        assert (left, err, out.count("\n")) == (status, "", 1)
        assert words in out


def test_unreadable_file_exits_with_2(capsys, tmp_path):
    """Standard error has one line."""
    for path in (tmp_path / "none.json", tmp_path):
        assert main([str(path)]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.count("\n") == 1
        assert str(path) in shown.err


def test_timeline_option_prints_json_of_a_verified_replay(run):
    """For any other replay, standard error has the reason in one line."""
    status, out, _ = run(UNDONE, "--timeline")
    assert status == 0
    assert json.loads(out)["undos"] == 2
    status, out, err = run(b"[]", "--timeline")
    assert (status, out, err.count("\n")) == (4, "", 1)


def test_boards_option_prints_each_step(run):
    """The deal and one board for each step, undos included, up to a refused move."""
    _, out, _ = run(UNDONE, "--boards")
    assert out.count("foundations ") == 1 + len(UNDONE["moves"]) + 2
    assert out.count("undo, score") == 2
    assert "··" in out
    assert "foundations K♥ K♣ K♠ K♦" in out
    _, out, _ = run(LITERAL | {"moves": ["StockClick", *LITERAL["moves"][-1:]], "mode": "Challenge"}, "--boards")
    assert out.count("foundations ") == 2
    assert " is refused\n" in out
    status, out, _ = run(b"[]", "--boards")
    assert (status, out.count("\n")) == (4, 1)


def test_every_reason_has_a_text():
    assert set(EXPLANATIONS) == set(Reason)


def test_engine_runs_as_a_module_without_twisted(tmp_path):
    """The command reads a file and imports only the engine. A reader that stops early is no error."""
    path = tmp_path / "replay.json"
    path.write_bytes(encoded(UNDONE))
    words = [sys.executable, "-m", "solisync.klondike", str(path), "--boards"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"deal ")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.wait() == 0
    code = "import solisync.klondike, sys; print([n for n in sys.modules if 'twisted' in n or 'solisync' in n])"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "twisted" not in modules
    assert "solisync.rules" not in modules
