"""`solisync admins`: the admins of the console, their codes and sessions."""

import re
from datetime import UTC, datetime

import pytest
from twisted.internet.defer import Deferred, gatherResults

from solisync.errors import BadRequest, FatalError, NotFound
from solisync.rules.administration import CODE_DIGITS
from solisync.rules.recovery import digest, read_code
from solisync.storage.operators import admins
from tests.harness.acting import operator
from tests.harness.postgres import run_sql


async def code_of(administrate, name="ann"):
    """Return the digest of a new code of an admin."""
    made = (await administrate("admins", "code", name, "--json")).json
    return digest(read_code(made["code"], CODE_DIGITS))


async def begin(reactor, server, code, *, secret=b"secret", name="ann", at_once=1):
    """Return the sessions that this number of simultaneous requests with one code begin."""
    async with operator(reactor, server.dsn) as acting:
        given = {"client": "unix", "user_agent": "a browser"}
        begun = [
            Deferred.fromCoroutine(
                acting.database.run(admins.begin, name, code, secret=secret + bytes([number]), **given)
            )
            for number in range(at_once)
        ]
        return [session for session in await gatherResults(begun) if session is not None]


async def test_admin_is_added_once_and_removed(administrate, server):
    """A second `add` changes nothing; names have a fixed form; removing an admin removes the code and the sessions."""
    assert "added admin 'ann'" in await administrate("admins", "add", "ann")
    assert (await administrate("admins", "add", "ann", "--json")).json == {"name": "ann", "added": False}
    for name in ("", "Ann", ".ann", "a b", "é", "x" * 33):
        await administrate("admins", "add", name, fails=BadRequest)
    assert [admin["name"] for admin in (await administrate("admins", "list", "--json")).records] == ["ann"]
    await code_of(administrate)
    await administrate("admins", "remove", "ann")
    assert await administrate("admins", "list", "--json") == ""
    assert server.sql("SELECT count(*) FROM admin_codes") == [(0,)]
    await administrate("admins", "remove", "ann", fails=NotFound)
    await administrate("admins", "code", "ann", fails=NotFound)


async def test_code_begins_one_session(administrate, server, reactor):
    """A code has 130 bits, in groups.

    Only the newest code counts, until it expires, and simultaneous uses begin one session.
    """
    await administrate("admins", "add", "ann")
    text = await administrate("admins", "code", "ann")
    assert re.fullmatch("(?:[0-9A-HJKMNP-TV-Z]{4}-){6}[0-9A-HJKMNP-TV-Z]{2}", text.lines[0])
    older, newer = await code_of(administrate), await code_of(administrate)
    assert not await begin(reactor, server, older)
    assert not await begin(reactor, server, newer, name="bob")
    assert len(await begin(reactor, server, newer, at_once=8)) == 1
    assert not await begin(reactor, server, newer)
    late = await code_of(administrate)
    server.sql("UPDATE admin_codes SET expires_at = now()")
    assert not await begin(reactor, server, late)


async def test_sessions_are_listed_and_ended_by_admin_or_id(administrate, server, reactor):
    for name in ("ann", "bob"):
        await administrate("admins", "add", name)
        for number in range(2):
            code = await code_of(administrate, name)
            assert await begin(reactor, server, code, secret=f"{name}{number}".encode(), name=name)
    assert len((await administrate("admins", "sessions", "--json")).records) == 4
    (first, second) = (await administrate("admins", "sessions", "ann", "--json")).records
    assert (first["admin"], first["client"], first["user_agent"]) == ("ann", "unix", "a browser")
    assert datetime.fromisoformat(first["expires_at"]) > datetime.now(UTC)
    await administrate("admins", "sessions", "bob", "--end-session", first["id"], fails=NotFound)
    await administrate("admins", "sessions", "ann", "--end-session", "nonsense", fails=NotFound)
    assert await administrate("admins", "sessions", "ann", "--end-session", first["id"]) == "ended 1 session of 'ann'\n"
    assert [each["id"] for each in (await administrate("admins", "sessions", "ann", "--json")).records] == [
        second["id"]
    ]
    assert await administrate("admins", "sessions", "bob", "--end") == "ended 2 sessions of 'bob'\n"
    await administrate("admins", "sessions", "--end", fails=FatalError)
    assert [admin["sessions"] for admin in (await administrate("admins", "list", "--json")).records] == [1, 0]


@pytest.mark.parametrize(("column", "age"), [("begun_at", "12 hours"), ("used_at", "1 hour")])
async def test_session_expires_after_twelve_hours_or_an_idle_hour(administrate, server, reactor, column, age):
    """Housekeeping deletes expired sessions and unused codes."""
    await administrate("admins", "add", "ann")
    await begin(reactor, server, await code_of(administrate))
    await code_of(administrate)
    async with operator(reactor, server.dsn) as acting:
        assert (await acting.database.run(admins.find, b"secret\0")).admin == "ann"
        await acting.database.run(admins.prune)
        run_sql(server.dsn, f"UPDATE admin_sessions SET {column} = now() - interval '{age}'")
        assert await acting.database.run(admins.find, b"secret\0") is None
        run_sql(server.dsn, "UPDATE admin_codes SET expires_at = now()")
        await acting.database.run(admins.prune)
    for table in ("admin_sessions", "admin_codes"):
        assert server.sql(f"SELECT count(*) FROM {table}") == [(0,)]


async def test_last_use_of_a_session_is_written_once_a_minute(administrate, server, reactor):
    """A second use within the minute writes nothing."""
    await administrate("admins", "add", "ann")
    await begin(reactor, server, await code_of(administrate))
    used = "SELECT used_at > now() - interval '30 s', xmin::text FROM admin_sessions"
    server.sql("UPDATE admin_sessions SET used_at = now() - interval '2 minutes'")
    async with operator(reactor, server.dsn) as acting:
        await acting.database.run(admins.find, b"secret\0")
        ((recent, version),) = server.sql(used)
        await acting.database.run(admins.find, b"secret\0")
    assert recent
    assert server.sql(used) == [(True, version)]
