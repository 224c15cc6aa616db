"""A visitor with a browser, who opens pages and records every complaint of a page."""

import io
import json
import time
import urllib.error
import urllib.request

from tests.harness.constants import PASSWORD, PATIENCE
from tests.harness.http_requests import new_address

# Chromium loads parts of its window that no test uses for each visitor, in their own processes: two thirds of the
# processor time of a visit. The switch replaces Playwright's, so it repeats those of its features that matter here.
UNUSED = (
    *("PreloadTopChromeWebUI", "WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "MediaRouter"),
    *("PaintHolding", "ThirdPartyStoragePartitioning", "OptimizationHints", "PreconnectToSearch"),
)
FLAGS = (
    "--no-sandbox",  # Chromium has no sandbox as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no host name resolves: nothing leaves this machine
    f"--disable-features={','.join(UNUSED)}",
)
SIZES = {390: 844, 1280: 860}
QUIET = 4  # consecutive checks in which nothing is being loaded
QUIET_MS = 40
# Reports violations of the policy, and gives tests the modules that the page uses: those of its build.
PRELUDE = """
  addEventListener("securitypolicyviolation", (event) => console.error("policy", event.violatedDirective));
  window.web = async (name) => {
    const style = () => document.querySelector("link[rel=stylesheet]");
    while (!style()) await new Promise((resolve) => setTimeout(resolve));
    return import(new URL(name, style().href));
  };
"""
# The browser's own message about a failed request; tests check the page's message instead.
ANSWERED = ("Failed to load resource: the server responded with", "Failed to load resource: net::ERR_")
BLOCKED = "Service Worker registration blocked by Playwright"


class Visitor:
    """A browser profile with a page, its own network address, and a list of its complaints.

    Service workers are blocked unless `service_workers="allow"`, because tests can't change requests that pass them.
    """

    def __init__(self, browser, site, *, width=1280, scheme="light", **options):
        self.site = site
        self.complaints = []
        self.requested = []
        self._pending = {}
        self.context = browser.new_context(
            base_url=site,
            viewport={"width": width, "height": SIZES.get(width, 860)},
            color_scheme=scheme,
            extra_http_headers={"X-Forwarded-For": new_address()},
            **{"service_workers": "block", **options},
        )
        self.context.add_init_script(PRELUDE)
        self.context.on("page", self._watch)
        self.page = self.context.new_page()

    def _watch(self, page):
        page.set_default_timeout(15_000)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requested.append(request.url))
        pending = self._pending[page] = set()
        page.on("request", lambda request: "/api/events" in request.url or pending.add(request))  # a stream stays open
        for answered in ("requestfinished", "requestfailed"):
            page.on(answered, lambda request: pending.discard(request))

    def _hear(self, message):
        if message.type in ("error", "warning", "assert") and not message.text.startswith((*ANSWERED, BLOCKED)):
            self.complaints.append(message.text)

    @property
    def elsewhere(self):
        """Return the requests to other hosts."""
        return [url for url in self.requested if not url.startswith((f"{self.site}/", f"blob:{self.site}/"))]

    def open(self, path):
        """Open a page, and wait until it has loaded its data."""
        self.page.goto(path)
        self.settle()
        return self.page

    def settle(self):
        """Wait until nothing is being loaded into the page."""
        self.page.wait_for_load_state("load")
        quiet = 0
        while quiet < QUIET:
            self.page.wait_for_timeout(QUIET_MS)
            busy = self._pending[self.page] or self.page.evaluate("Boolean(document.querySelector('[aria-busy]'))")
            quiet = 0 if busy else quiet + 1

    def register(self, name="ann", password=PASSWORD):
        """Register on the page."""
        page = self.open("/account")
        page.fill("#new-name", name)
        page.fill("#new-password", password)
        page.click("#new-form button.main")
        page.wait_for_selector("#in:not([hidden])")
        self.settle()

    def sign_in(self, name="ann", password=PASSWORD):
        """Sign in on the page."""
        page = self.open("/account")
        page.fill("#in-name", name)
        page.fill("#in-password", password)
        page.click("#in-form button.main")
        page.wait_for_selector("#in:not([hidden])")
        self.settle()


def until(page, expression, seconds=PATIENCE):
    """Wait until an expression is true in a page, and return its value. Playwright's own function needs eval there."""
    deadline = time.monotonic() + seconds
    while not (found := page.evaluate(expression)):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(20)
    return found


def answered(page, function, argument):
    """Return a page function's result for an argument, sent as text: Playwright takes ten times as long for values."""
    return json.loads(
        page.evaluate(f"async text => JSON.stringify(await ({function})(JSON.parse(text)))", json.dumps(argument))
    )


def picture(width=300, height=200):
    """Return a JPEG to upload, with its place of capture in the metadata."""
    from PIL import Image

    image = Image.new("RGB", (width, height), (20, 99, 63))
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    out = io.BytesIO()
    image.save(out, "JPEG", exif=exif)
    assert b"taken at home" in out.getvalue()
    return {"name": "me.jpg", "mimeType": "image/jpeg", "buffer": out.getvalue()}


class Refused(Exception):
    """The API refused a request."""


class Game:
    """A player's game, which calls the API without a browser."""

    def __init__(self, site, name="ann", *, login=False):
        self.site = site
        self.name = name
        self.token = None
        path = "/api/auth/login" if login else "/api/auth/register"
        self.token = self.call("POST", path, {"username": name, "password": PASSWORD})["access_token"]

    def call(self, method, path, body=None):
        """Send one request and return the JSON of its answer."""
        headers = {
            "X-Forwarded-For": new_address(),
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
        }
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.site + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read()) from error

    def seen_as(self, display_name):
        """Opt in to the leaderboard with this display name."""
        self.call("POST", "/api/leaderboard/opt-in", {"display_name": display_name})

    def upload(self, replay):
        """Upload a replay, wait for its verdict, and return its id."""
        replay_id = self.call("POST", "/api/replays", replay)["id"]
        while self.call("GET", f"/api/replays/{replay_id}/verdict")["status"] == "pending":
            pass
        return replay_id
