"""A database for the tests that kill it."""

import pytest_twisted
from twisted.internet.defer import Deferred

from solisync.embedded.server import EmbeddedPostgres


@pytest_twisted.async_yield_fixture
async def durable(reactor, initialized, place):
    """A PostgreSQL as the service runs it, which starts again when it is killed."""
    server = EmbeddedPostgres(reactor=reactor, data_dir=initialized(place / "data"), options=("max_connections=100",))
    server.claim()
    await Deferred.fromCoroutine(server.start())
    yield server
    await Deferred.fromCoroutine(server.stop())
