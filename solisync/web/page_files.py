"""Reads the files of the pages as they are served: pages and styles with what they share, scripts without comments.

Line numbers of scripts stay as they are in the files, for messages of browsers.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from .documents import MEDIA_TYPES

_IMPORT = re.compile(r'^@import "([a-z_]+\.css)";$', re.MULTILINE)
_PART = re.compile(r"^\$(courts|stage|moves|keys)\b\n?", re.MULTILINE)
# A text, a regular expression (which stands where no value can be divided), or a comment. A comment within the
# expression of a template stays, as part of the template.
_TEXT_OR_COMMENT = re.compile(
    r"""
    ( "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*`
    | (?<=[(,=:\[!&|?{};>]) [ \t]* /(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/ )
    | [ \t]* (?: /\*.*?\*/ | //[^\n]* )
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_END = re.compile(r"[ \t]+$", re.MULTILINE)


def with_parts(folder: Path, name: str) -> str:
    """A page with the parts that it shares with others: files beside it, whose names begin a line."""
    return _PART.sub(lambda found: (folder / f"{found[1]}.html").read_text("utf-8"), (folder / name).read_text("utf-8"))


@cache  # since the console has files of the players' pages too
def page_files(folder: Path) -> Mapping[str, bytes]:
    """The scripts, styles and pictures in a folder, by their names, as browsers get them."""
    return {file.name: _served(file) for file in sorted(folder.iterdir()) if file.suffix in MEDIA_TYPES}


def _served(file: Path) -> bytes:
    text = file.read_text("utf-8")
    if file.suffix == ".js":
        text = without_comments(text)
    elif file.suffix == ".css":  # one request less than if the browser did it
        text = _IMPORT.sub(lambda found: (file.parent / found[1]).read_text("utf-8"), text)
    return text.encode()


def without_comments(script: str) -> str:
    """The same script with as many lines and no comments."""
    return _LINE_END.sub("", _TEXT_OR_COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n"), script))
