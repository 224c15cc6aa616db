"""Files of environment variables (docs/configuration.md "Configuration")."""

import re

import pytest

from solisync.settings import env_file


def read(place, content):
    file = place / "file.env"
    file.write_bytes(content)
    return env_file.read(str(file))


@pytest.mark.parametrize(
    ("content", "variables"),
    [
        (b"", {}),
        (b"A=1\nB=\n\n  C=x y  \n", {"A": "1", "B": "", "C": "x y"}),
        (b"# A=1\n; B=2\n\t# and so on\nC=3 # no comment", {"C": "3 # no comment"}),
        (b"# goes on \\\nA=1\nB=2\n", {"B": "2"}),
        (b"A=1\nA=2\n", {"A": "2"}),
        (b'A=1\r\nB="2"\r\n', {"A": "1", "B": "2"}),
        (b'A=\\"q\\" \\\\ it\'s "x"\nB=b\\ \n', {"A": '"q" \\ it\'s "x"', "B": "b "}),
        (b'A="a \\"b\\" \\$x \\`\\\\ \\n"\nB= "  b  "  \n', {"A": 'a "b" $x `\\ \\n', "B": "  b  "}),
        (b"A='it\\s $x \"y\"'\n", {"A": 'it\\s $x "y"'}),
        (b"A=\"two\nlines\"\nB='two\nmore'\n", {"A": "two\nlines", "B": "two\nmore"}),
        (b'A=one\\\nline\nB="one\\\nline"', {"A": "oneline", "B": "oneline"}),
        ("A=Größe\n".encode(), {"A": "Größe"}),
    ],
)
def test_env_file_has_the_syntax_of_systemd(place, content, variables):
    """Comments, quotes, escapes, continued lines and multi-line values work as in systemd.exec(5)."""
    assert read(place, content) == variables


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"A=1\ncanary\n", 2),
        (b"export A=canary\n", 1),
        (b'A=1\n\nB="canary\n', 3),
        (b"A='canary\n", 1),
        (b"2A=canary\n", 1),
        (b'A="canary" more\n', 1),
    ],
)
def test_invalid_line_is_reported_by_number_only(place, content, line):
    """The line may contain a secret."""
    with pytest.raises(ValueError, match=f"in line {line}[^0-9]") as caught:
        read(place, content)
    assert "canary" not in str(caught.value)


def test_unreadable_env_file_is_named_in_one_line(place):
    """A file that isn't text is unreadable, too."""
    for content in (b"A=\xff\n",):
        with pytest.raises(ValueError, match="is not UTF-8"):
            read(place, content)
    with pytest.raises(ValueError, match=re.escape(f"can't be read: No such file or directory: {place}/none")):
        env_file.read(f"{place}/none")
