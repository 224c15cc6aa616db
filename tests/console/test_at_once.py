"""Two admins who act on one player or replay at the same time, and admins who are removed during an act."""

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from solisync.errors import NotFound
from solisync.rules.administration import COOKIE, new_session_secret
from solisync.rules.recovery import digest
from tests.harness.concurrency import until
from tests.harness.console import Console
from tests.harness.payloads import replay
from tests.harness.postgres import connect, lock_waiters

WHY = {"reason": "other", "note": "seen by hand"}
BEGIN = "INSERT INTO admin_sessions (admin, digest, begun_at, used_at, client) VALUES (%s, %s, now(), now(), 'unix')"
ACTS = {
    "suspend": ("PUT", "{player}/suspension", {"suspended": True}),
    "unsuspend": ("PUT", "{player}/suspension", {"suspended": False}),
    "lock": ("PUT", "{player}/lock", {"locked": True}),
    "rename": ("PUT", "{player}/username", {"username": "player_1"}),
    "delete": ("POST", "{player}/delete", {"username": "eve"}),
    "unlist": ("PUT", "{game}/listed", {"listed": False}),
    "list_again": ("PUT", "{game}/listed", {"listed": True}),
    "check": ("POST", "{game}/check", {"again": True}),
    "delete_replay": ("POST", "{game}/delete", {}),
}


@pytest_twisted.async_fixture
async def target(console, server, administrate):
    """The consoles of two admins, `ann` and `bob`, and the paths of a player and of one of their replays."""
    other = Console(console.port, administrate)
    for admin, name in ((console, "ann"), (other, "bob")):
        secret = new_session_secret()
        server.sql("INSERT INTO admins (name) VALUES (%s)", (name,))
        server.sql(BEGIN, (name, digest(secret)))
        admin.cookie = f"{COOKIE}={secret}"
    client = await server.player("eve")
    await client.opt_in("Rude")
    game = await client.upload_replay(replay())
    return [console, other], {"player": f"/players/{(await client.me()).id}", "game": f"/replays/{game}"}


def asked(admin, act, paths, **body):
    """Begin an act; return the Deferred answer."""
    method, path, given = ACTS[act]
    return Deferred.fromCoroutine(admin.ask(method, path.format(**paths), WHY | given | body))


async def wait_for_locks(server, reactor, count):
    """Wait until this number of statements wait for a lock."""
    await until(reactor, lambda: len(lock_waiters(server.dsn)) == count)


def recorded(server):
    return server.sql("SELECT actor, act FROM admin_acts ORDER BY id")


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("suspend", "suspend", (200, False)),
        ("suspend", "unsuspend", (200, True)),
        ("rename", "suspend", (200, True)),
        ("delete", "suspend", (404, None)),
        ("suspend", "delete", (200, True)),
        ("unlist", "list_again", (200, True)),
        ("delete_replay", "unlist", (404, None)),
        ("delete", "check", (404, None)),
        ("delete_replay", "delete_replay", (404, None)),
    ],
)
async def test_acts_of_two_admins_run_one_after_the_other(
    target, server, reactor, no_deadlocks, first, second, outcome
):
    """The second act sees the result of the first.

    The record has only acts that changed something, each with its admin.
    """
    admins, paths = target
    holder = connect(server.dsn)
    try:
        holder.cursor().execute("BEGIN; SELECT 1 FROM users FOR UPDATE")
        answers = []
        for admin, act in zip(admins, (first, second), strict=True):
            answers.append(asked(admin, act, paths))
            await wait_for_locks(server, reactor, len(answers))
    finally:
        holder.close()
    results = [(answer.status, answer.json.get("changed")) for answer in [await each for each in answers]]
    assert results == [(200, True), outcome]
    assert recorded(server) == [("ann", first), *([("bob", second)] if outcome == (200, True) else [])]


async def test_later_of_two_suspensions_sets_end_and_message(target, server, reactor):
    """The record has both suspensions, and lifting the suspension once is enough."""
    admins, paths = target
    holder = connect(server.dsn)
    try:
        holder.cursor().execute("BEGIN; SELECT 1 FROM users FOR UPDATE")
        answers = []
        for admin, message in zip(admins, ("first", "second"), strict=True):
            answers.append(asked(admin, "suspend", paths, message=message))
            await wait_for_locks(server, reactor, len(answers))
    finally:
        holder.close()
    assert [(await each).json["changed"] for each in answers] == [True, True]
    assert server.sql("SELECT message FROM suspensions") == [("second",)]
    assert recorded(server) == [("ann", "suspend"), ("bob", "suspend")]
    assert [(await asked(admins[0], "unsuspend", paths)).json["changed"] for _ in range(2)] == [True, False]
    assert server.sql("SELECT visible FROM leaderboard") == [(True,)]


@pytest.mark.parametrize("waits_for", ["SELECT 1 FROM users FOR UPDATE", "LOCK TABLE admin_acts IN EXCLUSIVE MODE"])
async def test_act_completes_when_its_admin_is_removed(target, server, administrate, reactor, waits_for):
    """The record has the admin's name; the admin's next request returns 401."""
    admins, paths = target
    holder = connect(server.dsn)
    try:
        holder.cursor().execute(f"BEGIN; {waits_for}")
        answer = asked(admins[0], "lock", paths)
        await wait_for_locks(server, reactor, 1)
        await administrate("admins", "remove", "ann")
    finally:
        holder.close()
    assert (await answer).json["changed"] is True
    assert (await asked(admins[0], "suspend", paths)).status == 401
    assert recorded(server) == [("ann", "lock")]
    assert server.sql("SELECT count(*) FROM profile_locks") == [(1,)]


async def test_sign_in_fails_while_the_admin_is_removed(console, server, administrate, reactor, no_deadlocks):
    """No session is left, and there is no deadlock."""
    await administrate("admins", "add", "ann")
    code = (await administrate("admins", "code", "ann", "--json")).json["code"]
    holder = connect(server.dsn)
    try:
        holder.cursor().execute("BEGIN; SELECT 1 FROM admins FOR UPDATE")
        removing = Deferred.fromCoroutine(administrate("admins", "remove", "ann"))
        await wait_for_locks(server, reactor, 1)
        answer = Deferred.fromCoroutine(console.ask("POST", "/session", {"name": "ann", "code": code}))
        await wait_for_locks(server, reactor, 2)
    finally:
        holder.close()
    await removing
    assert (await answer).status == 401
    assert server.sql("SELECT count(*) FROM admins, admin_sessions") == [(0,)]


async def test_code_is_refused_for_an_admin_who_is_being_removed(server, administrate, reactor):
    """The command reports that there is no such admin."""
    await administrate("admins", "add", "ann")
    holder = connect(server.dsn)
    try:
        holder.cursor().execute("BEGIN; DELETE FROM admins")
        making = Deferred.fromCoroutine(administrate("admins", "code", "ann", fails=NotFound))
        await wait_for_locks(server, reactor, 1)
        holder.cursor().execute("COMMIT")
    finally:
        holder.close()
    await making
    assert server.sql("SELECT count(*) FROM admin_codes") == [(0,)]
