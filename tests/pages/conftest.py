"""A service as users start it, and browsers that visit it. None of this runs in `make test`."""

import contextlib
import shutil
from pathlib import Path

import pytest

from solisync.commands.smoke import PIXEL
from tests.harness.boards import verified
from tests.harness.entry_points import serving
from tests.harness.postgres import run_sql, truncate
from tests.harness.processes import free_port
from tests.pages.admin import FILLED, HOSTILE, PLAYER
from tests.pages.visitor import Visitor

HERE = Path(__file__).resolve().parent
FLAGS = (
    "--no-sandbox",  # which it could not have as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no name leads out of this machine
)


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.needs("chromium"))


@pytest.fixture(scope="session")
def running(reactor, shared_dsn, logs):
    """The service in a process of its own, with a checker."""
    admin_port = free_port()
    listen = f"tcp:{admin_port}:interface=127.0.0.1"
    with serving(reactor, logs, shared_dsn, SOLISYNC_CHECKERS="1", SOLISYNC_ADMIN_LISTEN=listen) as service:
        service.console = f"http://127.0.0.1:{admin_port}"
        yield service


@pytest.fixture
def site(running):
    """The URL of the service, whose database is empty."""
    truncate(running.dsn)
    return running.url


@pytest.fixture(scope="session")
def chromium():
    """One browser; each visitor has a profile of its own in it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, site):
    """Bring a visitor with a fresh profile: `visit(width=390, scheme="dark", …)`; at the end none has a complaint."""
    with contextlib.ExitStack() as stack:
        visitors = []

        def visit(**options):
            visitor = Visitor(chromium, site, **options)
            stack.callback(visitor.context.close)
            visitors.append(visitor)
            return visitor

        yield visit
        for visitor in visitors:
            assert visitor.complaints == []
            assert visitor.elsewhere == []


@pytest.fixture
def visitor(visit):
    """One visitor at a desk."""
    return visit()


@pytest.fixture
def console(chromium, running, site):
    """Bring an admin's browser to a console with a player; `console(width=320)`. At the end nobody has a complaint."""
    run_sql(running.dsn, FILLED, {"id": PLAYER, "image": PIXEL, "hostile": HOSTILE})
    verified(running.dsn, PLAYER, 650, status="refuted")
    visitors = []

    def console(**options):
        visitor = Visitor(chromium, running.console, reduced_motion="reduce", **options)
        visitor.context.set_extra_http_headers({})
        visitors.append(visitor)
        return visitor

    yield console
    for visitor in visitors:
        visitor.context.close()
    for visitor in visitors:
        assert visitor.complaints == []
        assert visitor.elsewhere == []
