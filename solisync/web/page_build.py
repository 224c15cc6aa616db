"""The files of the pages in the form that browsers get, and the build of the players' pages, which has their names.

Pages and styles include their shared parts, styles and scripts lose comments and some space. Scripts keep their line
numbers, so that browsers' error messages match the files.

A digest of all that browsers keep names the build of the players' pages. It is in the addresses of the files,
`/web/<build>/<file>`. So an address always means the same bytes, and a script imports only scripts of the same build.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import NamedTuple

import msgspec

from .kept_replies import MEDIA_TYPES

STATIC = Path(__file__).resolve().parents[1] / "static"
PLAYERS_FILES, CONSOLE_FILES, DOCS_FILES = STATIC / "players", STATIC / "console", STATIC / "docs"
# the client, which the pages use too: inside the package in a wheel, beside it in a checkout
CLIENT_FILES = next(
    folder for folder in (STATIC / "client", STATIC.parents[1] / "clients/javascript/src") if folder.is_dir()
)
FILE_HEADERS = {"Cache-Control": "public, no-cache"}  # browsers ask each time, otherwise a page could mix two versions
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
)
UNUSED_FEATURES = (
    "accelerometer autoplay camera display-capture fullscreen geolocation gyroscope hid magnetometer microphone midi"
    " payment picture-in-picture publickey-credentials-get screen-wake-lock serial usb xr-spatial-tracking"
)
PAGE_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        f"{_POLICY} require-trusted-types-for 'script'; trusted-types solisync; manifest-src 'self'; worker-src 'self'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in UNUSED_FEATURES.split()),
    "Referrer-Policy": "same-origin",
}
"""The headers of all pages for players (docs/pages.md)."""
CONSOLE_HEADERS = {
    **PAGE_HEADERS,
    "Content-Security-Policy": f"{_POLICY} require-trusted-types-for 'script'; trusted-types 'none'",
}
"""The headers of all pages of the console, which start no workers."""

_IMPORT = re.compile(r'^@import "([a-z_]+\.css)";$', re.MULTILINE)
_PART = re.compile(r"^\$(courts|stage|moves|keys)\b\n?", re.MULTILINE)
# A text, a regular expression (which follows a character after which "/" can't divide), or a comment. A comment in an
# expression of a template stays, as part of the template.
_TEXT_OR_COMMENT = re.compile(
    r"""
    ( "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*`
    | (?<=[(,=:\[!&|?{};>]) [ \t]* /(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/ )
    | [ \t]* (?: /\*.*?\*/ | //[^\n]* )
    """,
    re.VERBOSE | re.DOTALL,
)
_STYLE_SPACE = re.compile(r"/\*.*?\*/|(?<=[{};:,])\s+|\s+(?=[{}])|;(?=\s*})", re.DOTALL)
_MARGINS = re.compile(r"^[ \t]+|[ \t]+$", re.MULTILINE)
BUILD_DIGITS = 16  # of the name of a build, hexadecimal

_SCRIPT = re.compile(r'"\./([a-z_]+\.js)"')  # in a script: the name of one that it imports


def with_parts(folder: Path, name: str) -> str:
    """Return a page with its shared parts: lines that begin with `$` name files in the same folder."""
    return _PART.sub(lambda found: (folder / f"{found[1]}.html").read_text("utf-8"), (folder / name).read_text("utf-8"))


@cache  # because the console shares files with the players' pages
def page_files(*folders: Path) -> Mapping[str, bytes]:
    """Return the scripts, styles and pictures in these folders by name, in the form that browsers get."""
    files = sorted(file for folder in folders for file in folder.iterdir())
    return {file.name: _served(file) for file in files if file.suffix in MEDIA_TYPES}


def _served(file: Path) -> bytes:
    content = file.read_bytes()
    if file.suffix == ".js":
        return stripped(content.decode()).encode()
    if file.suffix == ".css":  # including it here saves the browser a request
        text = _IMPORT.sub(lambda found: (file.parent / found[1]).read_text("utf-8"), content.decode())
        return _STYLE_SPACE.sub("", text).encode()
    return content


def stripped(script: str) -> str:
    """Return the script without comments and indentation, with the same number of lines."""
    return _MARGINS.sub("", _TEXT_OR_COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n"), script))


class Build(NamedTuple):
    """The name of a build, its files by name, and the manifest, by which browsers install the game as an app."""

    name: str
    files: Mapping[str, bytes]
    manifest: bytes

    @property
    def folder(self) -> str:
        """The path of its files."""
        return f"/web/{self.name}"


def players_build(site_name: str, *settings: object) -> Build:
    """Return the build of the pages. The site's name and other settings of the operator are in the pages' HTML."""
    files = page_files(PLAYERS_FILES / "web", CLIENT_FILES)
    parts = {file.name: file.read_bytes() for file in sorted(PLAYERS_FILES.iterdir()) if file.is_file()}
    digest = sha256(msgspec.msgpack.encode([site_name, settings, files, parts]))
    manifest = Template(parts["manifest.webmanifest"].decode())
    name = msgspec.json.encode(site_name).decode()
    return Build(digest.hexdigest()[:BUILD_DIGITS], files, manifest.substitute(site=name).encode())


def kept_files(build: Build, pages: Iterable[bytes]) -> list[str]:
    """Return the names of the files that these pages load, and of the scripts that those scripts import, also later."""
    named = re.compile(f'{build.folder}/([^"]+)')
    waiting = {name for page in pages for name in named.findall(page.decode())}
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        if name.endswith(".js"):
            waiting |= set(_SCRIPT.findall(build.files[name].decode())) - found
    return sorted(found)


def service_worker(build: Build, pages: Mapping[str, bytes]) -> bytes:
    """Return the service worker of the build, which keeps these pages, by path, and the files that they load."""
    text = stripped((PLAYERS_FILES / "sw.js").read_text("utf-8"))
    files = kept_files(build, pages.values())
    for name, value in (("folder", build.folder), ("pages", " ".join(pages)), ("files", " ".join(files))):
        text = text.replace(f"${name}", value)
    return text.encode()
