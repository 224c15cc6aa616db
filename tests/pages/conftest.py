"""Fixtures: a service started as users start it, and browsers that visit it. `make test` runs none of these tests."""

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
from tests.pages.visitor import FLAGS, Visitor

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.needs("chromium"))


@pytest.fixture(scope="session")
def running(reactor, shared_dsn, logs):
    """The service in a separate process, with a checker."""
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
    """One browser for all visitors, each with a separate profile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, site):
    """Create visitors with fresh profiles: `visit(width=390, scheme="dark", …)`. Fail at the end on complaints."""
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
    """A visitor with a wide screen."""
    return visit()


@pytest.fixture
def console(chromium, running, site):
    """Open a console with a player in an admin's browser: `console(width=320)`. Fail at the end on complaints."""
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
