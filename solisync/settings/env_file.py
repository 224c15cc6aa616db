"""Files of environment variables, in the syntax of systemd's EnvironmentFile= (systemd.exec(5)).

    # a comment, as is a line that begins with a semicolon
    NAME=a value without quotes, where a backslash keeps the next character
    NAME="a value in which \" \\ ` $ may be escaped"
    NAME='a value without any escapes'

A value in quotes may have several lines, and a backslash at the end of a line joins it with the next one. systemd
ignores a line that isn't an assignment. Here such a line is an error, because it is a mistake.
"""

import re
from pathlib import Path

_SKIPPED = re.compile(r"[ \t\r]*(?:[#;](?:\\\n|[^\n])*)?(?:\n|\Z)")
_NAME = re.compile(r"[ \t]*([A-Za-z_][A-Za-z0-9_]*)=[ \t]*")
_VALUE = re.compile(
    r"""
    (?: " (?P<double> (?: \\. | [^"\\] )* ) "
      | ' (?P<single> [^']* ) '
      | (?P<bare> (?: (?: \\. | [^\\\n"'] ) (?: \\. | [^\\\n] )* )? )
    ) [ \t\r]* (?: \n | \Z )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = {"double": re.compile(r'\\(["\\`$\n])'), "bare": re.compile(r"\\(.)", re.DOTALL)}


def read(path: str) -> dict[str, str]:
    """Return the variables in a file; the last one of a name wins. Raises ValueError with the file, but no value."""
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise ValueError(f"can't be read: {error.strerror}: {path}") from None
    except UnicodeDecodeError:
        raise ValueError(f"is not UTF-8: {path}") from None
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        if (skipped := _SKIPPED.match(text, place)) is not None:
            place = skipped.end()
            continue
        name = _NAME.match(text, place)
        value = name and _VALUE.match(text, name.end())
        if name is None or value is None:
            line = text.count("\n", 0, place) + 1
            raise ValueError(f"has no NAME=VALUE in line {line}, or a quote that does not end: {path}")
        found[name[1]] = _unescaped(value)
        place = value.end()
    return found


def _unescaped(value: re.Match[str]) -> str:
    style = value.lastgroup
    assert style is not None
    text = value[style]
    if style == "bare":  # an escaped trailing blank is a part of the value
        text = re.sub(r"(?<!\\)[ \t\r]+\Z", "", text)
    if style in _ESCAPE:
        text = _ESCAPE[style].sub(lambda escape: "" if escape[1] == "\n" else escape[1], text)
    return text
