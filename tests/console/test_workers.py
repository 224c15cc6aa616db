"""The console of a service with several workers, at a unix socket."""

import json

from twisted.internet.threads import deferToThread

from tests.harness.administration import administration
from tests.harness.console import SITE
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import SOLISYNC, start
from tests.harness.http_requests import UnixConnection
from tests.harness.postgres import run_sql, truncate
from tests.harness.processes import wait_until_ready


def ask(path, method, target, headers, body=None):
    connection = UnixConnection(path, PATIENCE)
    connection.request(method, f"/api/admin{target}", body and json.dumps(body), headers)
    return connection.getresponse()


async def test_workers_serve_the_console_at_its_socket(launch, reactor, shared_dsn, place):
    """A session is valid at all workers, and headers can't change its address.

    The socket has mode 660 and ends with the parent.
    """
    truncate(shared_dsn)
    path = place / "admin.sock"
    variables = {"SOLISYNC_ADMIN_LISTEN": f"unix:{path}"}
    process = start(launch, *SOLISYNC, "--workers", "2", dsn=shared_dsn, **variables)
    await deferToThread(wait_until_ready, process, 2)
    assert path.stat().st_mode & 0o777 == 0o660
    administrate = administration(reactor, shared_dsn)
    await administrate("admins", "add", "ann")
    code = (await administrate("admins", "code", "ann", "--json")).json["code"]
    sent = SITE | {"X-Forwarded-For": "192.0.2.7"}
    answer = await deferToThread(ask, path, "POST", "/session", sent, {"name": "ann", "code": code})
    assert answer.status == 200
    cookie = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
    for _ in range(10):
        assert (await deferToThread(ask, path, "GET", "/me", sent | cookie)).status == 200
    assert run_sql(shared_dsn, "SELECT client FROM admin_sessions") == [("unix",)]
    assert (await deferToThread(ask, path, "GET", "/health", sent | cookie)).status == 404
    assert process.stop() == 0
    assert not path.exists()
    assert "unix admin:ann GET /api/admin/me 200" in process.log
