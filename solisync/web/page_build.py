"""The build of the players' pages: their files, and a digest of all that browsers keep, which names the build.

The digest is in the addresses of the files, `/web/<build>/<file>`. So an address always means the same bytes, and a
script imports only scripts of its own build.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from string import Template
from typing import NamedTuple

import msgspec

from .documents import CLIENT_FILES, PLAYERS_FILES, page_files, stripped

DIGITS = 16  # hexadecimal, of the digest

_SCRIPT = re.compile(r'"\./([a-z_]+\.js)"')  # in a script: the name of one that it imports


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
    return Build(digest.hexdigest()[:DIGITS], files, manifest.substitute(site=name).encode())


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
