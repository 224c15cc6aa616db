"""Tests of the game without a network: the service worker through upgrades, and with slow, broken and mixed servers."""

import contextlib
import http.client
import json
import shutil
import signal
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.harness.concurrency import wait_for
from tests.harness.constants import PATIENCE, ROOT
from tests.harness.entry_points import SERVE
from tests.harness.postgres import truncate
from tests.harness.processes import free_port, launching
from tests.harness.service import environment
from tests.pages.player import Hand, keep, opened, until_journals, won_game
from tests.pages.visitor import FLAGS, Game, Visitor, until

CACHES = "caches.keys()"
BUILDS = "[...window.builds].sort()"  # of the scripts that have run in the page
KEPT = "document.getElementById('offline').textContent"
INSTALLED = "navigator.serviceWorker.getRegistration().then(({ installing, waiting }) => !installing && !waiting)"
WORKERS = "navigator.serviceWorker.getRegistrations().then((found) => found.length)"
CACHED = """(async () => {
  const names = await caches.keys();
  const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
  return requests.flat().map(({ url }) => new URL(url).pathname);
})()"""


@pytest.fixture(scope="session")
def versions(tmp_path_factory):
    """Return the directory of a version: the service with pages whose scripts all report the number of the version."""

    def version(number):
        place = tmp_path_factory.getbasetemp() / f"version-{number}"
        if place.exists():
            return place
        shutil.copytree(ROOT / "solisync", place / "solisync")
        shutil.copytree(ROOT / "migrations", place / "migrations")
        shutil.copytree(ROOT / "clients/javascript/src", place / "clients/javascript/src")
        scripts = [*place.glob("solisync/static/players/web/*.js"), *place.glob("clients/javascript/src/*.js")]
        for script in scripts:
            with script.open("a") as file:
                file.write(f"\n(globalThis.builds ??= new Set()).add({number});\n")
        return place

    return version


class Server:
    """A service on one port, in one version after the other."""

    def __init__(self, launch, dsn, versions):
        self.launch, self.dsn, self.versions = launch, dsn, versions
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self, version=0, **settings):
        """Start a version, and wait until it answers."""
        listen = f"tcp:{self.port}:interface=127.0.0.1"
        given = environment(self.dsn, SOLISYNC_LISTEN=listen, SOLISYNC_CHECKERS="1", **settings)
        path = {"PYTHONPATH": str(self.versions(version))}
        self.process = self.launch(*SERVE, port=self.port, dsn=self.dsn, **given, **path)
        wait_for(self._answers)

    def _answers(self):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"{self.url}/health/ready", timeout=PATIENCE).status == 200
        return False

    def kill(self):
        """Kill the service, as a crash would."""
        self.process.stop(signal.SIGKILL)

    def upgrade(self, version, **settings):
        """Replace the running version."""
        self.kill()
        self.start(version, **settings)


@pytest.fixture
def server(shared_dsn, logs, versions):
    truncate(shared_dsn)
    with launching(logs) as launch:
        yield Server(launch, shared_dsn, versions)


@pytest.fixture
def traveller(chromium, server):
    """A visitor whose browser runs service workers."""
    visitor = Visitor(chromium, server.url, service_workers="allow")
    yield visitor
    visitor.context.close()
    assert visitor.complaints == []


def installed(visitor, path="/play"):
    """Open the game, and wait until the browser keeps it."""
    page = opened(visitor, path)
    until(page, f"{KEPT} === 'This game also works without a connection.'")
    return page


def test_upgrade_is_shown_by_the_second_load_even_offline(server, traveller):
    """Three upgrades in a row. The page never gets scripts of two builds, and one cache is left."""
    server.start()
    page = installed(traveller)
    for version in (1, 2, 3):
        before = page.evaluate(CACHES)
        server.upgrade(version)
        opened(traveller)
        until(page, f"{CACHES}.then((now) => now.length === 1 && now[0] !== {json.dumps(before[0])})")
        server.kill()
        opened(traveller)
        assert page.evaluate(BUILDS) == [version]
        assert len(page.evaluate(CACHES)) == 1
        server.start(version)
    assert page.evaluate(WORKERS) == 1


def test_page_left_open_keeps_its_build_through_upgrades(server, traveller):
    """Its late imports are of its own build, from the cache, which goes when the page is closed."""
    server.start()
    old = installed(traveller)
    (first,) = old.evaluate(CACHES)
    page = traveller.context.new_page()
    for version in (1, 2, 3):
        server.upgrade(version)
        before = old.evaluate(CACHES)
        page.goto("/play")
        until(page, f"{CACHES}.then((now) => now.length === 2 && now.join() !== {json.dumps(','.join(before))})")
        until(page, INSTALLED)  # the cache of a build exists before all its files are in it
        assert first in page.evaluate(CACHES)
    server.kill()
    page.goto("/play")
    until(page, "Boolean(document.querySelector('#board li') && window.builds)")
    assert page.evaluate(BUILDS) == [3]
    assert old.evaluate("web('solver.js').then(({ solve }) => typeof solve)") == "function"
    assert old.evaluate(BUILDS) == [0]
    old.close()
    server.start(3)
    page.goto("/play")
    until(page, f"{CACHES}.then((now) => now.length === 1)")


def test_game_opens_deals_resumes_and_finishes_offline(server, traveller):
    """One visit is enough. The killed server gets the wins of two games when it is back, each once."""
    server.start()
    player = Game(server.url)
    traveller.sign_in()
    page = installed(traveller)
    until_journals(page, "Boolean((await (await web('journal.js')).journals()).of.ann?.base)")
    replay, moves = won_game()
    keep(page, replay, moves[:-2])
    server.kill()
    hand = Hand(opened(traveller, f"/play?deal={replay['seed']}"))  # resumes
    hand.drag(moves[-2])
    opened(traveller)  # resumes again, from the browser's storage
    hand.drag(moves[-1])
    until(page, "document.getElementById('won-heading').textContent")
    until(page, "document.getElementById('result').textContent.includes('It will be sent when')")
    page.click("#won-next .main")  # deals
    until(page, "document.getElementById('points').textContent === '0 points'")
    page.goto("/leaderboard")
    assert page.inner_text("h1") == "You are not connected"
    opened(traveller)
    until(page, "document.getElementById('waiting').textContent.includes('1 win waits')")
    server.start()
    page.click("#retry button")
    until_journals(page, "!(await (await web('journal.js')).journals()).of.ann.wins.length")
    until_journals(page, "!(await (await web('journal.js')).journals()).of.ann.games.length")
    assert player.call("GET", "/api/sync/pull")["merged"]["stats"]["games_won"] == 1
    assert len(player.call("GET", "/api/me/replays")["replays"]) == 1


def test_cache_has_the_page_and_its_files_alone(server, traveller):
    """Nothing under /api or /avatars is kept, also for a player who is signed in."""
    server.start()
    traveller.register()
    page = installed(traveller)
    traveller.open("/")
    opened(traveller)
    (folder,) = {path.rpartition("/")[0] for path in page.evaluate(CACHED)} - {""}
    assert (
        folder
        == page.evaluate("document.querySelector('link[rel=stylesheet]').getAttribute('href')").rpartition("/")[0]
    )


def test_hanging_server_gives_way_to_the_kept_page(server, traveller):
    server.start()
    page = installed(traveller)
    server.process.popen.send_signal(signal.SIGSTOP)
    try:
        page.goto("/play")
        until(page, "document.querySelector('#board li')")
    finally:
        server.process.popen.send_signal(signal.SIGCONT)


def test_worker_removes_itself_when_pages_are_off(server, traveller):
    server.start()
    page = installed(traveller)
    server.upgrade(0, SOLISYNC_PAGES="off")
    assert page.goto("/play").status == 404
    until(page, f"{WORKERS}.then((count) => count === 0)")
    assert page.evaluate(CACHES) == []
    assert page.goto("/play").status == 404


class Balancer(ThreadingHTTPServer):
    """A balancer in front of two nodes: requests whose path begins with one of `strays` go to the second."""

    def __init__(self, nodes, strays):
        self.nodes, self.strays = nodes, strays
        super().__init__(("127.0.0.1", 0), Forward)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Forward(BaseHTTPRequestHandler):
    def do_GET(self):
        balancer = self.server
        port = balancer.nodes[self.path.startswith(balancer.strays)]
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", self.path, headers={"Accept": self.headers["Accept"] or "*/*"})
        answer = connection.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name in ("Content-Type", "Cache-Control", "Content-Security-Policy"):
            if answer.headers[name]:
                self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def balanced(*nodes, strays):
    with Balancer([node.port for node in nodes], strays) as balancer:
        thread = threading.Thread(target=balancer.serve_forever)
        thread.start()
        yield balancer
        balancer.shutdown()
        thread.join()


@pytest.mark.parametrize("strays", [("/play",), ("/web/",), ("/sw.js",)])
def test_browser_keeps_no_mixture_of_two_builds(chromium, shared_dsn, logs, versions, strays):
    """While a balancer sends the page, its files or the worker to a node of another version, nothing is kept."""
    truncate(shared_dsn)
    with launching(logs) as launch, contextlib.ExitStack() as stack:
        nodes = [Server(launch, shared_dsn, versions) for _ in range(2)]
        for version, node in enumerate(nodes):
            node.start(version)
        balancer = stack.enter_context(balanced(*nodes, strays=strays))
        visitor = Visitor(chromium, balancer.url, service_workers="allow")
        stack.callback(visitor.context.close)
        page = opened(visitor)
        until(page, f"{KEPT}.includes('couldn’t keep')")
        assert page.evaluate(CACHES) == []
        balancer.strays = ("/",)
        installed(visitor)
        assert page.evaluate(BUILDS) == [1]
        assert len(page.evaluate(CACHES)) == 1


def test_chromium_finds_nothing_that_prevents_installation(chromium, server, tmp_path):
    """The profile is stored: Chromium installs nothing from others."""
    server.start()
    launched = {"executable_path": shutil.which("chromium"), "args": FLAGS}
    context = chromium.browser_type.launch_persistent_context(tmp_path, **launched)
    try:
        page = context.pages[0]
        page.goto(f"{server.url}/play")
        until(page, KEPT)
        tools = context.new_cdp_session(page)
        manifest = tools.send("Page.getAppManifest")
        assert manifest["errors"] == []
        assert json.loads(manifest["data"])["start_url"] == "/play"
        assert tools.send("Page.getInstallabilityErrors")["installabilityErrors"] == []
    finally:
        context.close()


def test_policy_gives_no_other_workers(visitor):
    """A page starts no worker from addresses other than those of the service worker and the solver."""
    page = opened(visitor)
    error = "(work) => { try { return String(work()); } catch (error) { return error.name; } }"
    allowed = f"async (address) => (({{ allowed }}) => ({error})(() => allowed(address)))(await web('workers.js'))"
    assert page.evaluate(allowed, "/sw.js") == "/sw.js"
    for other in ("/web/play.js", "https://example.org/sw.js", "blob:x", "/sw.js?x"):
        assert page.evaluate(allowed, other) == "TypeError"
    for attempt in ("new Worker('/sw.js')", "trustedTypes.createPolicy('other', {})"):
        with page.expect_console_message(lambda message: message.text.startswith("policy")):
            assert page.evaluate(f"({error})(() => {attempt})") == "TypeError"
    visitor.complaints.clear()


@pytest.mark.parametrize("broken", ["quota", "caches"])
def test_full_or_blocked_storage_costs_only_the_kept_page(server, traveller, broken):
    """A sentence says so; the game goes on, and is there after a reload."""
    server.start()
    page = traveller.page
    tools = traveller.context.new_cdp_session(page)
    if broken == "quota":
        tools.send("Storage.overrideQuotaForOrigin", {"origin": server.url, "quotaSize": 20_000})
    else:
        traveller.context.add_init_script(
            "navigator.serviceWorker.register = async () => { throw new DOMException('blocked', 'SecurityError'); }"
        )
    opened(traveller, "/play?deal=42&draw=one")
    until(page, f"{KEPT}.includes('couldn’t keep')")
    assert page.evaluate(CACHES) == []
    Hand(page).stock()
    until(page, "document.getElementById('moves').textContent === '1 move'")
    opened(traveller)
    assert page.inner_text("#moves") == "1 move"


def test_page_on_plain_http_says_what_is_missing(visitor):
    visitor.context.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false })")
    page = opened(visitor)
    until(page, f"{KEPT} === 'To play without a connection, open this site over HTTPS.'")
