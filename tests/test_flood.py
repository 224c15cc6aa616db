"""A crowd at the door: logins at the production cost while others want to be served (contract §0, §3)."""

import sys
import time
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet import defer
from twisted.internet.task import deferLater

from tests.conftest import PASSWORD, environment, free_port, ready

LOGINS = 100


@pytest_twisted.async_fixture
async def production(launch, reactor, empty_database):
    """`solisync` itself, with bcrypt at its real cost."""
    port = free_port()
    variables = environment(empty_database, SOLISYNC_LISTEN=f"tcp:{port}:interface=127.0.0.1")
    process = launch(Path(sys.executable).parent / "solisync", port=port, dsn=empty_database, **variables)
    await ready(reactor, process.client())
    await process.player("ann")
    return process


@pytest.mark.limit(120)
async def test_a_crowd_of_logins_leaves_the_rest_quick(production, reactor):
    """Of 100 logins at once some are served and the excess is declined in time; health answers throughout."""
    body = {"username": "ann", "password": PASSWORD}
    health, logins, over = [], [], []

    async def login():
        began = time.monotonic()
        answer = await production.ask("POST", "/api/auth/login", body=body)
        logins.append((answer.status, time.monotonic() - began, answer.headers.get("retry-after")))

    async def watch():
        while not over:
            began = time.monotonic()
            assert (await production.ask("GET", "/health")).status == 200
            health.append(time.monotonic() - began)
            await deferLater(reactor, 0.01)

    watching = defer.ensureDeferred(watch())
    await defer.gatherResults([defer.ensureDeferred(login()) for _ in range(LOGINS)], consumeErrors=True)
    over.append(True)
    await watching

    served = sorted(seconds for status, seconds, _ in logins if status == 200)
    declined = [retry_after for status, _, retry_after in logins if status == 503]
    p99 = sorted(health)[int(len(health) * 0.99)]
    print(
        f"\n{len(served)} logins served, slowest {served[-1]:.2f} s; {len(declined)} declined;"
        f" health p99 {p99 * 1000:.1f} ms over {len(health)} requests"
    )
    assert len(served) + len(declined) == LOGINS
    assert served
    assert all(int(retry_after) >= 1 for retry_after in declined)
    assert served[-1] < 80
    assert p99 < 0.5


@pytest.mark.limit(60)
async def test_abandoned_logins_are_not_hashed(production, reactor):
    """Logins whose clients hang up in the queue cost nothing: the next one doesn't wait for them."""
    began = time.monotonic()
    await production.client().login("ann", PASSWORD)
    alone = time.monotonic() - began
    body = {"username": "ann", "password": PASSWORD}
    waiting = [defer.ensureDeferred(production.ask("POST", "/api/auth/login", body=body)) for _ in range(30)]
    await deferLater(reactor, 4 * alone)
    for login in waiting:
        login.addErrback(lambda _: None)
        login.cancel()
    began = time.monotonic()
    await production.client().login("ann", PASSWORD)
    print(f"\nalone {alone:.2f} s, after 30 that hung up {time.monotonic() - began:.2f} s")
    assert time.monotonic() - began < 10 * alone
