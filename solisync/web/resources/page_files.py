"""The files of the players' pages, the manifest and the service worker (docs/pages.md "Without a network")."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from ...errors import NotFound
from ..kept_replies import both_ways, unless_known
from ..page_build import FILE_HEADERS, Build, service_worker
from ..route import PAGE, Handler, get
from ..wire.reply import NO_STORE, Reply

FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
WORKER_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'",
}


def _file_at(path: str, name: str, summary: str) -> Callable[[Handler], Handler]:
    """Declare the route of a file, which pages of other origins may not read. As for pages, the query isn't read."""
    return get(path, name=name, summary=summary, shared=False, answer=PAGE)


class PageFiles:
    """Serves what pages load, from memory. `kept_pages` are the HTML of the pages that browsers keep, by path."""

    tag: ClassVar[str] = ""

    def __init__(self, *, build: Build, kept_pages: Mapping[str, bytes]) -> None:
        self._build = build.name
        self._files = {name: both_ways(name, content, FILE_HEADERS) for name, content in build.files.items()}
        self._manifest = both_ways("manifest.webmanifest", build.manifest, FILE_HEADERS)
        self._worker = both_ways("sw.js", service_worker(build, kept_pages), WORKER_HEADERS)

    @_file_at("/web/{name}", "web_file", "A part of the pages")
    async def file(self, *, name: str, if_none_match: str | None, gzip: bool) -> Reply:
        """Return a script, a style sheet or a picture of the pages, for clients that know no build."""
        return unless_known(self._file(name, gzip), if_none_match)

    @_file_at("/web/{build}/{name}", "built_web_file", "A part of the pages of one build")
    async def built_file(self, *, build: str, name: str, if_none_match: str | None, gzip: bool) -> Reply:
        """Return a file of this node's build. Caches may keep it if the path names this build."""
        headers = FOREVER if build == self._build else NO_STORE
        return unless_known(self._file(name, gzip).with_headers(headers), if_none_match)

    @_file_at("/manifest.webmanifest", "manifest", "The manifest, by which browsers install the game")
    async def manifest(self, *, if_none_match: str | None, gzip: bool) -> Reply:
        """Return the manifest."""
        return unless_known(self._manifest[gzip], if_none_match)

    @_file_at("/sw.js", "service_worker", "The script that keeps the game for players without a network")
    async def service_worker(self, *, if_none_match: str | None, gzip: bool) -> Reply:
        """Return the service worker of this node's build."""
        return unless_known(self._worker[gzip], if_none_match)

    def _file(self, name: str, gzip: bool) -> Reply:
        if name not in self._files:
            raise NotFound()
        return self._files[name][gzip]
