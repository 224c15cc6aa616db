"""The console when a service is killed, beside another node, and without its database."""

import signal
from uuid import uuid4

import pytest
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.threads import deferToThread

from tests.fire.servers import servers
from tests.harness.administration import administration
from tests.harness.concurrency import until
from tests.harness.console import Console, new_admin
from tests.harness.postgres import connect, lock_waiters
from tests.harness.processes import free_port
from tests.harness.service import ready, start

WHY = {"reason": "spam"}
LOCKS = """
    SELECT username, profile_locks.user_id IS NOT NULL, (
        SELECT count(*) FROM admin_notes JOIN admin_acts ON admin_acts.id = act_id WHERE admin_notes.user_id = users.id
    ) FROM users LEFT JOIN profile_locks ON profile_locks.user_id = users.id ORDER BY username
"""


async def test_act_and_its_record_are_stored_together_or_not_at_all(console, server, serve, administrate, reactor):
    """The service is killed while one act waits for its player and another for its record; then both are repeated."""
    ids = [(await (await server.player(name)).me()).id for name in ("ann", "bob")]
    port = free_port()
    listen = f"tcp:{port}:interface=127.0.0.1"
    # A lock on the table of acts must not delay new connections, which would prepare the statement that fills it.
    process = await serve(server.dsn, SOLISYNC_ADMIN_LISTEN=listen, SOLISYNC_PREPARED_STATEMENTS="off")
    cookies = [(await console.sign_in(name)).cookie for name in ("ann", "bob")]  # each admin does one act at a time
    dying = Console(port, administrate)
    body = WHY | {"locked": True}
    holders = [connect(server.dsn), connect(server.dsn)]
    try:
        holders[0].cursor().execute("BEGIN; SELECT 1 FROM users WHERE username = 'ann' FOR UPDATE")
        holders[1].cursor().execute("BEGIN; LOCK TABLE admin_acts IN EXCLUSIVE MODE")
        asked = [
            Deferred.fromCoroutine(dying.ask("PUT", f"/players/{user_id}/lock", body, cookie=cookie))
            for user_id, cookie in zip(ids, cookies, strict=True)
        ]
        lost = DeferredList(asked, consumeErrors=True)
        await until(reactor, lambda: len(lock_waiters(server.dsn)) == 2)
        await deferToThread(process.stop, signal.SIGKILL)
        assert [succeeded for succeeded, _ in await lost] == [False, False]
    finally:
        for holder in holders:
            holder.close()
    await until(reactor, lambda: not lock_waiters(server.dsn))
    assert {(locked, acts) for _, locked, acts in server.sql(LOCKS)} <= {(False, 0), (True, 1)}
    for user_id in ids:
        assert (await console.ask("PUT", f"/players/{user_id}/lock", body)).status == 200
    assert server.sql(LOCKS) == [("ann", True, 1), ("bob", True, 1)]


async def test_limit_of_sensitive_acts_covers_all_nodes(console, server, administrate, reactor):
    """The eleventh act returns 429 on both nodes. Sensitive acts don't extend the session."""
    await console.sign_in(new_admin())
    until_before = (await console.get("/me"))["until"]
    running = await start(reactor, server.dsn, settings={"SOLISYNC_ADMIN_LISTEN": "tcp:0:interface=127.0.0.1"})
    try:
        other = Console(running.service.admin_address.port, administrate)
        other.cookie = console.cookie
        body = WHY | {"username": "ann"}
        statuses = [
            (await node.ask("POST", f"/players/{uuid4()}/delete", body)).status for node in [console, other] * 6
        ]
        assert statuses == [404] * 10 + [429] * 2
        assert (await other.get("/me"))["until"] == until_before
    finally:
        await running.service.stopService()


@pytest.mark.long
async def test_console_returns_503_without_its_database(launch, reactor, new_cluster):
    """Afterwards the session is valid, and no refused act was carried out."""
    with servers(cluster=new_cluster) as made:
        database = made.make_primary()
        settings = {"SOLISYNC_ADMIN_LISTEN": "tcp:0:interface=127.0.0.1"}
        running = await start(reactor, database.dsn, settings=settings)
        try:
            console = Console(running.service.admin_address.port, administration(reactor, database.dsn))
            await console.sign_in()
            user_id = (await (await running.player("ann")).me()).id
            await deferToThread(database.kill)
            for path in ("/me", "/players?q=ann", f"/players/{user_id}", "/acts", "/review", "/service"):
                assert (await console.ask("GET", path)).status == 503, path
            act = "PUT", f"/players/{user_id}/suspension", WHY | {"suspended": True}
            assert (await console.ask(*act)).status == 503
            await deferToThread(database.start)
            await ready(reactor, running.client())
            assert (await console.get("/acts"))["acts"] == []
            assert (await console.ask(*act)).status == 200
            assert len((await console.get("/acts"))["acts"]) == 1
        finally:
            await running.service.stopService()
