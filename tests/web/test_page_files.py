"""Files of the players' pages by build, the manifest and the service worker (docs/pages.md "Without a network")."""

import re

import msgspec
import pytest

from solisync.web.page_build import PLAYERS_FILES, Build, kept_files, players_build
from tests.harness.postgres import truncate
from tests.harness.service import start

FOREIGN = "0123456789abcdef"
FOREVER = "public, max-age=31536000, immutable"
PAPER = re.compile(r"--paper: (#\w+)")


async def built(server, page="/play"):
    """The path of the files that a page loads."""
    (folder,) = set(re.findall(r'"(/web/[0-9a-f]{16})/', (await server.ask("GET", page)).content.decode()))
    return folder


async def test_file_of_this_build_may_be_kept_for_a_year(server):
    """All pages name the same build. The path without a build, which older pages ask for, has the same bytes."""
    folder = await built(server)
    assert {await built(server, page) for page in ("/", "/replays", "/daily", "/account", "/replays/x")} == {folder}
    kept = await server.ask("GET", f"{folder}/style.css")
    assert (kept.status, kept.headers["cache-control"]) == (200, FOREVER)
    for path in ("/web/style.css", "/web/style.css?v=1", f"{folder}/style.css?v=1"):
        assert (await server.ask("GET", path)).content == kept.content
    again = await server.ask("GET", f"{folder}/style.css", {"If-None-Match": kept.headers["etag"]})
    assert (again.status, again.headers["cache-control"]) == (304, FOREVER)


async def test_file_of_another_build_is_this_builds_and_no_cache_keeps_it(server):
    """While two versions run, a page of the other one works with our files, but only until it is reloaded."""
    for name in ("style.css", "play.js", "icon-192.png"):
        answer = await server.ask("GET", f"/web/{FOREIGN}/{name}")
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        assert answer.content == (await server.ask("GET", f"/web/{name}")).content
    for path in (
        f"/web/{FOREIGN}/nope.js",
        f"{await built(server)}/nope.js",
        f"/web/{FOREIGN}/",
        f"/web/{FOREIGN}/a/b",
    ):
        assert (await server.ask("GET", path)).status == 404


async def test_service_worker_names_the_build_and_all_that_the_game_loads(server):
    """The worker has at most 3.25 KiB. Its bytes are the same until the build changes, which makes it a new worker."""
    folder = await built(server)
    answer = await server.ask("GET", "/sw.js")
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-security-policy"] == "default-src 'none'; connect-src 'self'"
    assert len(answer.content) <= 3328
    text = answer.content.decode()
    assert f'"{folder}/"' in text
    names = re.search(r'FILES = "([^"]+)"', text)[1].split()
    assert {"play.js", "play.css", "style.css", "results.js", "outbox.js", "solver.js", "search.js"} <= set(names)
    assert not {"home.js", "replay.css", "account.js"} & set(names)
    for path in ("/play", "/offline", *(f"{folder}/{name}" for name in names)):
        assert (await server.ask("GET", path)).status == 200


def test_kept_files_are_those_of_the_page_and_of_its_scripts():
    """Static and dynamic imports count, also those of imported scripts. Scripts may import in a circle."""
    files = {
        "a.js": b'import { x } from "./b.js";\nimport "./c.js";',
        "b.js": b'const late = () => import("./d.js");',
        "c.js": b"",
        "d.js": b'import { y } from "./a.js";',
        "e.js": b'import "./a.js";',
        "a.css": b"",
    }
    page = b'<link href="/web/1/a.css"><script src="/web/1/a.js"></script>'
    assert kept_files(Build("1", files, b""), [page]) == ["a.css", "a.js", "b.js", "c.js", "d.js"]


def test_build_depends_on_files_and_on_settings():
    """The operator's name for the site is in the kept page, so another name is another build."""
    assert players_build("Cards", ()) == players_build("Cards", ())
    assert players_build("Cards", ()).name != players_build("Solitaire", ()).name


async def test_manifest_has_the_sites_name_colours_and_icons(reactor, shared_dsn):
    """The colours are those of the pages' background, also in the pages' heads. The icons have their sizes."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_SITE_NAME": 'Ann\'s "cards"'})
    try:
        answer = await running.ask("GET", "/manifest.webmanifest")
        assert answer.headers["content-type"] == "application/manifest+json"
        manifest = msgspec.json.decode(answer.content)
        assert manifest["name"] == 'Ann\'s "cards"'
        assert (manifest["start_url"], manifest["scope"], manifest["display"]) == ("/play", "/", "standalone")
        light, dark = PAPER.findall((PLAYERS_FILES / "web" / "style.css").read_text("utf-8"))
        assert manifest["theme_color"] == manifest["background_color"] == light
        assert set(manifest["color_scheme_dark"].values()) == {dark}
        layout = (await running.ask("GET", "/play")).content.decode()
        assert re.findall(r'"theme-color" content="(#\w+)"', layout) == [light, dark]
        for icon in manifest["icons"]:
            answer = await running.ask("GET", icon["src"])
            assert answer.headers["content-type"] == icon["type"] == "image/png"
            width, height = (int.from_bytes(answer.content[at : at + 4]) for at in (16, 20))
            assert f"{width}x{height}" == icon["sizes"]
        assert [icon.get("purpose") for icon in manifest["icons"]] == [None, None, "maskable"]
    finally:
        await running.service.stopService()


@pytest.mark.parametrize("path", ["/sw.js", "/manifest.webmanifest", "/offline", f"/web/{FOREIGN}/style.css"])
async def test_file_of_the_pages_does_not_depend_on_the_query(server, path):
    plain = await server.ask("GET", path)
    assert (await server.ask("GET", f"{path}?x=1&x=%00")).content == plain.content
