"""The console of the service that most tests share."""

import pytest

from solisync.web.console import signing_in
from tests.harness.console import Console


@pytest.fixture
def console(server, administrate):
    """A client of the console that hasn't signed in."""
    return Console(server.service.admin_address.port, administrate)


@pytest.fixture
def refuse_after(monkeypatch):
    """Set the delay in seconds of the answers to refused sign-ins."""

    def refuse_after(seconds):
        monkeypatch.setattr(signing_in, "REFUSED_SECONDS", seconds)
        monkeypatch.setattr(signing_in, "LATE_SECONDS", seconds)

    return refuse_after


@pytest.fixture
def soon(refuse_after):
    """Answer refused sign-ins after a moment."""
    refuse_after(0.02)
