"""Floods of wrong codes at the console's listener delay no right one. Source: docs/console.md "Signing in"."""

import time

import msgspec
import pytest
from twisted.internet.task import deferLater

from solisync.events.streams import RESERVED, raise_limit
from solisync.rules.administration import CODE_DIGITS
from solisync.rules.recovery import new_code
from tests.fire.raw import Crowd, Kind, head, running
from tests.harness.administration import administration
from tests.harness.console import SITE, Console, new_admin
from tests.harness.processes import free_port

TARGET_SECONDS = 2
BUSY = 10  # how many times slower than the target a busy machine may be


def wrong(name):
    """Return a request with a random code."""
    body = msgspec.json.encode({"name": name, "code": new_code(CODE_DIGITS)})
    lines = [*map(": ".join, SITE.items()), f"Content-Length: {len(body)}"]
    return head("POST", "/api/admin/session", *lines).replace(b"Host: a", b"Host: localhost") + body


@pytest.mark.limit(300)
async def test_right_code_is_answered_soon_among_wrong_ones(serve, migrated_database, reactor, figure):
    """As many connections as this process may open send a wrong code each, 16,000 at most."""
    port = free_port()
    await serve(migrated_database, SOLISYNC_ADMIN_LISTEN=f"tcp:{port}:interface=127.0.0.1")
    console = Console(port, administration(reactor, migrated_database))
    count = min(16_000, raise_limit() - RESERVED)
    crowd = Crowd(port, [Kind(name="wrong", opening=wrong("ann"), drips=False)], count)
    seconds = []
    with running(crowd):
        while crowd.statuses["wrong"].total() < count:
            name = new_admin()
            body = {"name": name, "code": await console.new_code(name)}
            began = time.monotonic()
            answer = await console.ask("POST", "/session", body)
            seconds.append(time.monotonic() - began)
            assert answer.status == 200
            await deferLater(reactor, 1)
    statuses = crowd.statuses["wrong"]
    figure(f"{dict(statuses)}: {len(seconds)} right codes were answered within {max(seconds):.2f} s")
    assert max(seconds) < BUSY * TARGET_SECONDS
    assert set(statuses) == {401, 429}
