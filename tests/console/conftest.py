"""The console of the service that most tests share."""

import pytest

from tests.harness.console import Console


@pytest.fixture
def console(server, administrate):
    """A client of the console that hasn't signed in."""
    return Console(server.service.admin_address.port, administrate)
