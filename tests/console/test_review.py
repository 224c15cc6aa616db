"""Marks of the review (docs/console.md "Review")."""

import pytest
import pytest_twisted

from tests.harness.boards import verified
from tests.harness.housekeeping import make_housekeeping

HAPPENED = "INSERT INTO account_history (happened_at, user_id, event, client, times) VALUES (now(), %s, %s, 'x', 1)"
KINDS = {"names": "profiles", "avatars": "profiles", "players": "players", "entries": "entries", "replays": "replays"}


@pytest_twisted.async_fixture
async def ann(console, server):
    """A player with one item of each kind, and an admin who has signed in; return the player's id."""
    await console.sign_in("root")
    client = await server.player("ann")
    await client.opt_in("Ann")
    user_id = (await client.me()).id
    for event in ("register", "opted in", "avatar changed"):
        server.sql(HAPPENED, (user_id, event))
    server.sql("UPDATE users SET avatar_extension = 'png'; UPDATE leaderboard SET best_score = 650")
    verified(server.dsn, user_id, 650, status="refuted")
    return user_id


async def items(console, kind, query=""):
    rows = (await console.get(f"/review?kind={kind}{query}"))[KINDS[kind]]
    return [row.get("event", row["id"]) for row in rows]


async def see(console, kind, items, status=200, **more):
    answer = await console.ask("PUT", "/review/seen", {"kind": kind, "items": items, **more})
    assert answer.status == status, answer
    return answer.json


@pytest.mark.parametrize("kind", KINDS)
async def test_seen_item_leaves_the_list(console, server, ann, kind):
    """`seen=all` still lists it. The mark isn't an act, can be repeated and taken back, and goes with the player."""
    listed = await items(console, kind)
    assert len(listed) == 1
    assert (await see(console, kind, listed))["changed"] is True
    assert (await see(console, kind, listed))["changed"] is False
    assert await items(console, kind) == []
    assert await items(console, kind, "&seen=all") == listed
    assert (await see(console, kind, listed, seen=False))["changed"] is True
    assert await items(console, kind) == listed
    await see(console, kind, listed)
    assert server.sql("SELECT count(*) FROM admin_acts") == [(0,)]
    server.sql("DELETE FROM users")
    assert server.sql("SELECT count(*) FROM review_seen") == [(0,)]


async def test_newer_change_is_a_new_item(console, server, ann):
    """Other kinds aren't marked with it. A better score is a new entry."""
    for kind in ("names", "entries"):
        await see(console, kind, await items(console, kind))
    assert await items(console, "players") != []
    server.sql(HAPPENED, (ann, "opted in"))
    server.sql("UPDATE leaderboard SET best_score = 700")
    assert len(await items(console, "names")) == 1
    assert len(await items(console, "entries")) == 1
    (row,) = (await console.get("/review?kind=names&seen=all"))["profiles"]
    assert row["seen_by"] is None


async def test_mark_names_the_admin(console, ann):
    await see(console, "names", await items(console, "names"))
    assert (await console.get("/review?kind=names&seen=all"))["profiles"][0]["seen_by"] == "root"


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("names", ["1"]),
        ("names", [0]),
        ("names", [2**63]),
        ("players", list(range(1, 102))),
        ("entries", ["1"]),
        ("entries", [7]),
        ("entries", ["00000000-0000-0000-0000-000000000000.x"]),
        ("entries", ["00000000-0000-0000-0000-000000000000.12345678901"]),
        ("replays", ["00000000-0000-0000-0000-000000000000.1"]),
        ("fun", []),
    ],
)
async def test_wrong_items_return_400(console, server, ann, kind, wrong):
    """At most a hundred items, each in the form of its list."""
    await see(console, kind, wrong, 400)
    assert server.sql("SELECT count(*) FROM review_seen") == [(0,)]


async def test_missing_items_are_ignored(console, server, ann):
    """The items may have been deleted since the admin read the list."""
    nobody = "00000000-0000-0000-0000-000000000000"
    for kind, item in (("names", 10**12), ("entries", f"{nobody}.4294967295"), ("replays", nobody)):
        assert (await see(console, kind, [item]))["changed"] is False
    assert (await console.ask("GET", "/review?seen=some")).status == 400


async def test_old_marks_are_deleted(console, server, ann, reactor):
    await see(console, "names", await items(console, "names"))
    await see(console, "avatars", await items(console, "avatars"))
    server.sql("UPDATE review_seen SET seen_at = now() - interval '401 days' WHERE kind = 'names'")
    await make_housekeeping(server.service.parts.database, reactor).prune()
    assert server.sql("SELECT kind FROM review_seen") == [("avatars",)]
