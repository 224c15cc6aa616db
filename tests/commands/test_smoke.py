"""`solisync --smoke`: what it says about a proxy that changes requests."""

from unittest.mock import AsyncMock, Mock

import pytest

from solisync.client import ApiError
from solisync.commands.smoke import _Smoke


async def test_refused_login_of_a_page_names_the_host_header(reactor):
    """The service compares Origin with Host, from which a proxy at another port has cut the port."""
    refused = ApiError(403, "requests of other sites are refused", code="forbidden")
    check = _Smoke(Mock(browser_login=AsyncMock(side_effect=refused)), reactor)
    with pytest.raises(ValueError, match=r"Host \$host:\$server_port"):
        await check._log_in_as_a_page("ann", "a password")
