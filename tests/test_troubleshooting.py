"""docs/troubleshooting.md names error codes, every finding of `solisync doctor`, and log lines that exist."""

import ast
import re

from solisync.errors import STATUS
from tests.harness.constants import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
SOURCES = sorted((ROOT / "solisync").rglob("*.py"))
FINDERS = [*sorted((ROOT / "solisync" / "diagnosis").glob("*.py")), ROOT / "solisync" / "commands" / "doctor.py"]
LEVELS = ("note", "wrong")


def section(heading):
    """Return a part of the page, up to the next heading of its level."""
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_error_code_table_has_codes_that_exist():
    """Each row has codes with their status, and no code is in two rows."""
    rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| (\d{3}) \| .+ \| .+ \|$", section("Error codes"), re.M)
    listed = [(code, int(status)) for codes, status in rows for code in re.findall(r"[a-z_]+", codes)]
    assert {*listed} <= {*STATUS.items()}
    assert len({*listed}) == len(listed) > 15


def test_findings_table_is_complete():
    """Each finding other than `ok` has one row with subject, level and text, and no row is out of date."""
    rows = re.findall(r"^\| `([a-z]+)` \| (note|wrong) \| (.+?) \| .+ \|$", section("Findings of doctor"), re.M)
    listed = [(subject, level, "…" if text == "*the reason*" else text.strip("`")) for subject, level, text in rows]
    assert sorted(listed) == sorted({finding for file in FINDERS for finding in findings(file)})


def test_headings_quote_existing_log_lines():
    """Each heading, with its dots for values, is a part of one text in the sources."""
    sources = "\n".join(text for file in SOURCES for text in texts(ast.parse(file.read_text("utf-8"))))
    headings = re.findall(r"^### `(.+)`$", section("Log lines"), re.M)
    assert len(headings) > 30
    for heading in headings:
        assert re.search(".*".join(map(re.escape, heading.strip("… ").split("…"))), sources), heading


def texts(tree):
    """Return the strings of a module, with dots for values that are filled in."""
    return [shown(node) for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr)]


def shown(node):
    """Return a string as readers see it, with dots for values; only dots for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return re.sub(r"{[\w!]+}", "…", text)
        case ast.JoinedStr(values=values):
            return re.sub("…+", "…", "".join(shown(value) for value in values))
    return "…"


def findings(file):
    """Return subject, level and text of a module's findings; for `text`, the value assigned just above."""
    tree = ast.parse(file.read_text("utf-8"))
    assigned = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="text")]):
                assigned[node.lineno] = shown(node.value)
            case ast.AugAssign(target=ast.Name(id="text")):
                assigned[node.lineno] = assigned[node.lineno - 1] + shown(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LEVELS:
            subject, text = node.args[:2]
            if isinstance(text, ast.Name) and text.id == "text":
                yield subject.value, node.func.id, assigned[max(line for line in assigned if line <= node.lineno)]
            else:
                yield subject.value, node.func.id, shown(text)
