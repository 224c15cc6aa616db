"""The console of the service that most tests share."""

import pytest

from solisync.web.console import late_answers, signing_in
from tests.harness.console import Console


@pytest.fixture
def console(server, administrate):
    """The console, in which nobody has signed in."""
    return Console(server.service.admin_address.port, administrate)


@pytest.fixture
def soon(monkeypatch):
    """Refused sign-ins are answered a moment later."""
    monkeypatch.setattr(signing_in, "REFUSED_SECONDS", 0.02)
    monkeypatch.setattr(late_answers, "LATE_SECONDS", 0.02)
