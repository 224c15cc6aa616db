"""List the places of words that readers stumble over, and fail if there are any: `words.py`, part of `make lint`.

It reads the documentation, and the code with its comments, messages and texts, but not the changelog of releases.
"""

import re
import sys
from pathlib import Path

BETTER = {
    r"whoever": "the player, the client, any client",
    r"somebody|someone else": "the player, another player, an admin",
    r"meanwhile": "during the upgrade, while it runs",
    r"at once": "immediately, or at the same time",
    r"(?:is|are|was|were|been|be) told": "gets, receives",
    r"gives? way": "fails, makes room",
    r"signs? of life": "a heartbeat",
    r"as ever": "as before",
    r"for good": "permanently",
    r"the (?:newest|oldest|latest) first": "newest first",
    r"in the place of": "instead of",
    r"of (?:its|their|his|her) own accord": "automatically",
}
PATTERN = re.compile("|".join(rf"(?P<p{number}>\b(?:{each})\b)" for number, each in enumerate(BETTER)), re.IGNORECASE)
SUFFIXES = {".py", ".md", ".js", ".html", ".sql", ".yml", ".env"}
SKIPPED = {"CHANGELOG.md", "words.py", "baseline.sql"}  # the last equals the schema of 1.0.0, comments included
ROOT = Path(__file__).parent.parent


def places(text: str) -> list[str]:
    """The number of each line with such words, the words, and what to write instead."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in PATTERN.finditer(line):
            found.append(f"{number}: “{match[0]}”: {list(BETTER.values())[int(match.lastgroup[1:])]}")
    return found


def files() -> list[Path]:
    """The files to read, in order."""
    folders = ("solisync", "clients", "tests", "bench", "docs", "deploy", "migrations", ".ci")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if "node_modules" not in path.parts]
    found += ROOT.glob("*")
    return sorted(path for path in found if path.suffix in SUFFIXES and path.name not in SKIPPED)


def main() -> None:
    """Print all places."""
    lines = [f"{path.relative_to(ROOT)}:{place}" for path in files() for place in places(path.read_text("utf-8"))]
    sys.exit("\n".join([*lines, f"{len(lines)} words to replace"]) if lines else 0)


if __name__ == "__main__":
    main()
