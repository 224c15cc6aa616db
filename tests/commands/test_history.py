"""`solisync users history`, `find` and `link`."""

import re
from datetime import UTC, datetime, timedelta

from solisync.commands import users
from solisync.errors import BadRequest, NotFound
from tests.harness.constants import PASSWORD
from tests.harness.service import refused

NEW = "another horse"
PUT = "INSERT INTO account_history (happened_at, user_id, event, reason, client, times)"


async def happened(server, event, client="192.0.2.1", *, name="ann", hours=0, times=1):
    put = f"{PUT} SELECT now() - make_interval(hours => %s), id, %s, NULL, %s, %s FROM users WHERE username = %s"
    server.sql(put, (hours, event, client, times, name))


async def test_history_has_events_and_acts(administrate, server):
    """The newest come first, up to the limit. An act shows the admin and the reason, an event the client."""
    await server.player("ann")
    await server.player("bob")
    await happened(server, "login", hours=2)
    await happened(server, "login failed", "2001:db8::/64", hours=1, times=3)
    await happened(server, "exported", name="bob")
    await administrate("users", "rename", "ann", "anna", "--reason", "name", "--note", "asked\nfor it")
    lines = (await administrate("users", "history", "anna", "--json")).records
    assert [(line["what"], line["times"], line["client"]) for line in lines] == [
        ("rename", 1, None),
        ("login failed", 3, "2001:db8::/64"),
        ("login", 1, "192.0.2.1"),
    ]
    assert (lines[0]["reason"], lines[0]["before"], lines[0]["after"]) == ("name", "ann", "anna")
    assert lines[0]["by"].startswith("shell:")
    shown = await administrate("users", "history", "anna", "--limit", "2")
    assert len(shown.lines) == 3
    assert shown.lines[0].split() == ["AT", "WHAT", "TIMES", "CLIENT", "BY", "DETAILS"]
    assert "name; ann → anna; asked\\nfor it" in shown.lines[1]
    await administrate("users", "history", "ann", fails=NotFound)


async def test_players_are_found_by_address(administrate, server, monkeypatch):
    """Addresses of the same /64 match; the player seen last comes first."""
    for name, hours in (("ann", 5), ("bob", 1), ("cyd", 0)):
        await server.player(name)
        await happened(server, "login", "2001:db8:1:2::/64" if name != "cyd" else "192.0.2.9", name=name, hours=hours)
    await happened(server, "login failed", "2001:db8:1:2::/64", hours=2, times=4)
    found = (await administrate("users", "find", "2001:db8:1:2::77", "--address", "--json")).records
    assert [(line["username"], line["events"]) for line in found] == [("bob", 1), ("ann", 5)]
    monkeypatch.setattr(users, "MOST", 1)
    cut = await administrate("users", "find", "2001:db8:1:2::77", "--address")
    assert (len(cut.lines), cut.progress) == (2, ["there are more: only the first 1 are shown"])
    assert (await administrate("users", "find", "192.0.2.10", "--address", "--json")).records == []
    await administrate("users", "find", "nowhere", "--address", fails=BadRequest)


async def test_reset_link_lets_the_player_set_a_password(administrate, server):
    """A link works once, within an hour. A newer link replaces it; until it is used, the old password works."""
    client = await server.player("ann")
    codes = (await client.make_recovery_codes(PASSWORD)).codes
    former, made = [(await administrate("users", "link", "ann", "--json")).json for _ in range(2)]
    expires = datetime.fromisoformat(made["expires_at"])
    assert abs(expires - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=1)
    assert made["username"] == "ann"
    tokens = [re.fullmatch(r"/reset#([\w-]{43})", each["path"])[1] for each in (former, made)]
    assert await client.refresh()
    assert await refused(server.client().reset(tokens[0], NEW)) == (401, "invalid credentials")
    assert await server.client().reset(tokens[1], NEW)
    assert await refused(client.refresh()) == (401, "unauthorized")
    assert await refused(server.client().recover("ann", codes[0], NEW)) == (401, "invalid credentials")


async def test_reset_link_is_recorded_without_its_token(administrate, server):
    """The record has the admin and the reason; the database has only the digest."""
    await server.player("ann")
    shown = await administrate("users", "link", "ann", "--reason", "request")
    link, about = shown.lines
    assert re.fullmatch(r"for 'ann', works once, until .{19} UTC", about)
    ((act, reason, stored),) = server.sql(
        "SELECT act, reason, admin_acts::text || admin_notes::text FROM admin_acts JOIN admin_notes ON act_id = id"
    )
    assert (act, reason) == ("link", "request")
    assert link.partition("#")[2] not in stored + str(server.sql("SELECT reset_tokens::text FROM reset_tokens"))


async def test_lock_out_leaves_only_the_reset_link(administrate, server):
    """The password, sessions, access tokens and recovery codes end immediately."""
    client = await server.player("ann")
    access, codes = client.tokens.access_token, (await client.make_recovery_codes(PASSWORD)).codes
    made = (await administrate("users", "link", "ann", "--lock-out", "--json")).json
    assert await refused(server.client().login("ann", PASSWORD)) == (401, "invalid credentials")
    assert await refused(client.refresh()) == (401, "unauthorized")
    assert await refused(server.client().recover("ann", codes[0], NEW)) == (401, "invalid credentials")
    assert server.sql("SELECT password_hash ~ '^[$]2b[$]12[$]' FROM users") == [(True,)]
    assert server.sql("SELECT count(*) FROM access_cutoffs") == [(1,)]
    await client.reset(made["path"].partition("#")[2], NEW)
    assert (await client.me()).username == "ann"
    assert client.tokens.access_token != access
