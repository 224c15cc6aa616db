"""The console of the service that most tests share."""

import pytest

from solisync.web.console import signing_in
from tests.harness.console import Console


@pytest.fixture
def console(server, administrate):
    """The console, in which nobody has signed in."""
    return Console(server.service.admin_address.port, administrate)


@pytest.fixture
def refuse_after(monkeypatch):
    """Set after how many seconds refused sign-ins are answered."""

    def refuse_after(seconds):
        monkeypatch.setattr(signing_in, "REFUSED_SECONDS", seconds)
        monkeypatch.setattr(signing_in, "LATE_SECONDS", seconds)

    return refuse_after


@pytest.fixture
def soon(refuse_after):
    """Refused sign-ins are answered a moment later."""
    refuse_after(0.02)
