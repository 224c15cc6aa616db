"""Moderation actions in the console: docs/console.md "Acts"."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from solisync.commands.smoke import PIXEL
from solisync.rules.recovery import digest
from tests.harness.concurrency import until
from tests.harness.console import new_admin
from tests.harness.constants import PASSWORD
from tests.harness.payloads import replay
from tests.harness.postgres import connect, lock_waiters
from tests.harness.service import refused

WHY = {"reason": "other", "note": "seen by hand"}
NOBODY = str(uuid4())


async def act(console, method, path, status=200, **body):
    """Carry out an act; return the answer."""
    answer = await console.ask(method, path, WHY | body)
    assert answer.status == status, answer
    return answer.json


@pytest_twisted.async_fixture
async def ann(console, server):
    """A player with an entry, an avatar and a replay, and an admin who has signed in: client, path, replay's path."""
    await console.sign_in("root")
    client = await server.player("ann")
    await client.opt_in("Rude")
    await client.upload_avatar(PIXEL, "image/png")
    replay_id = await client.upload_replay(replay())
    return client, f"/players/{(await client.me()).id}", f"/replays/{replay_id}"


async def test_password_link_is_stored_as_a_digest(console, server, ann):
    """Each link differs; with `lock_out` the old password no longer logs in."""
    client, player, _ = ann
    first = await act(console, "POST", f"{player}/password-link")
    second = await act(console, "POST", f"{player}/password-link", lock_out=True)
    token = second["path"].removeprefix("/reset#")
    assert token != first["path"].removeprefix("/reset#")
    assert server.sql("SELECT digest = %s FROM reset_tokens", (digest(token),)) == [(True,)]
    assert (await refused(client.login("ann", PASSWORD)))[0] == 401
    await client.reset(token, "another horse")


async def test_deleting_a_player_needs_the_username(console, server, ann):
    _, player, _ = ann
    await act(console, "POST", f"{player}/delete", 400, username="Ann")
    assert server.sql("SELECT username FROM users") == [("ann",)]


async def test_player_renamed_during_the_deletion_stays(console, server, reactor, ann):
    """The admin hasn't typed the new name."""
    _, player, _ = ann
    renaming = connect(server.dsn)
    try:
        with renaming.cursor() as cursor:
            cursor.execute("BEGIN; UPDATE users SET username = 'anna' WHERE username = 'ann'")
            deleting = Deferred.fromCoroutine(act(console, "POST", f"{player}/delete", 400, username="ann"))
            await until(reactor, lambda: lock_waiters(server.dsn))
            cursor.execute("COMMIT")
        assert "username" in (await deleting)["error"]
    finally:
        renaming.close()
    assert server.sql("SELECT username FROM users") == [("anna",)]


async def test_public_lists_show_an_act_immediately(console, server, ann):
    """The process that performs it forgets its caches of the leaderboard and of recent replays."""
    client, player, replay_path = ann
    replay_id = replay_path.removeprefix("/replays/")

    async def lists():
        return [
            str((await server.ask("GET", f"/api/{path}", bearer=client.tokens.access_token)).json)
            for path in ("leaderboard", "replays/recent")
        ]

    board, recent = await lists()
    assert ("Rude" in board, replay_id in recent) == (True, True)
    await act(console, "PUT", f"{player}/entry", display_name="Polite")
    await act(console, "PUT", f"{replay_path}/listed", listed=False)
    board, recent = await lists()
    assert ("Polite" in board, replay_id in recent) == (True, False)


async def test_deletion_of_a_large_account_is_one_act(console, server, ann):
    """While its replays are deleted in batches, a repetition of the request changes nothing."""
    _, player, _ = ann
    server.sql("INSERT INTO large_accounts (user_id, erased) SELECT id, true FROM users")
    done = await act(console, "POST", f"{player}/delete", username="ann")
    assert (done["changed"], done["settled"]) == (False, False)
    assert server.sql("SELECT count(*)::int FROM admin_acts WHERE act = 'delete'") == [(0,)]


async def test_several_players_are_suspended_together(console, server, ann):
    """Each existing player is suspended once; the answer lists the missing ids."""
    _, player, _ = ann
    bob = (await (await server.player("bob")).me()).id
    ids = [player.removeprefix("/players/"), bob, NOBODY, bob]
    done = await act(console, "POST", "/suspensions", ids=ids)
    assert done == {"suspended": ids[:2], "missing": [NOBODY], "left": []}
    assert server.sql("SELECT count(*) FROM suspensions") == [(2,)]


async def test_database_error_amid_several_suspensions_leaves_the_rest(console, server, ann, no_lost_failures):
    """The answer names the players who are suspended. When nobody is, the request fails."""
    _, player, _ = ann
    ids = [player.removeprefix("/players/")]
    for name in ("bob", "carl"):
        ids.append((await (await server.player(name)).me()).id)
    server.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;"
        f"CREATE TRIGGER refuse BEFORE INSERT ON suspensions FOR EACH ROW WHEN (NEW.user_id = '{ids[1]}')"
        " EXECUTE FUNCTION refuse()"
    )
    done = await act(console, "POST", "/suspensions", ids=[NOBODY, *ids])
    assert done == {"suspended": ids[:1], "missing": [NOBODY], "left": ids[1:]}
    assert server.sql("SELECT user_id::text FROM suspensions") == [(ids[0],)]
    await act(console, "POST", "/suspensions", 500, ids=done["left"])
    no_lost_failures.clear()
    server.sql("DROP FUNCTION refuse CASCADE")
    assert await act(console, "POST", "/suspensions", ids=done["left"]) == {
        "suspended": ids[1:],
        "missing": [],
        "left": [],
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("suspension", {"suspended": True, "reason": None}),
        ("suspension", {"suspended": True, "reason": "fun"}),
        ("suspension", {"suspended": True, "note": None}),
        ("suspension", {"suspended": True, "note": "x" * 501}),
        ("suspension", {"suspended": True, "until": (datetime.now(UTC) - timedelta(days=1)).isoformat()}),
        ("suspension", {"suspended": True, "until": "2199-01-01T00:00:00"}),
        ("suspension", {"suspended": True, "until": "9999-12-31T23:59:59-01:00"}),
        ("suspension", {"suspended": True, "until": "0001-01-01T00:00:00+01:00"}),
        ("suspension", {"suspended": True, "message": "x" * 201}),
        ("suspension", {"suspended": "yes"}),
        ("lock", {}),
        ("entry", {}),
        ("entry", {"display_name": " "}),
        ("username", {"username": "a b"}),
    ],
)
async def test_invalid_act_returns_400_and_does_nothing(console, server, ann, path, body):
    """A reason is required, `other` needs a note, and all texts and times have bounds."""
    _, player, _ = ann
    await act(console, "PUT", f"{player}/{path}", 400, **body)
    assert server.sql("SELECT count(*) FROM admin_acts") == [(0,)]


async def test_taken_username_is_a_conflict(console, server, ann):
    _, player, _ = ann
    await server.player("bob")
    await act(console, "PUT", f"{player}/username", 409, username="bob")


async def test_sensitive_acts_are_limited(console, server, ann):
    """The eleventh link in ten minutes returns 429, for any player; other acts still work."""
    _, player, _ = ann
    await console.sign_in(new_admin())
    for _ in range(10):
        await act(console, "POST", f"{player}/password-link")
    answer = await console.ask("POST", f"/players/{NOBODY}/password-link", WHY)
    assert answer.status == 429
    assert 0 < int(answer.headers["retry-after"]) <= 600
    await act(console, "PUT", f"{player}/lock", locked=True)
    assert server.sql("SELECT count(*) FROM admin_acts WHERE act = 'link'") == [(10,)]


async def test_refusals_of_admins_are_counted(console, server, ann):
    """The alerts need sign-ins with a wrong code, and sensitive acts over the limit."""
    await console.sign_in(new_admin())
    counted = server.service.parts.metrics.registry.get_sample_value
    asked = {"route": "/api/admin/session", "method": "POST", "status": "401"}
    before = counted("solisync_http_requests_total", asked) or 0
    assert (await console.ask("POST", "/session", {"name": "root", "code": "K7QF"})).status == 401
    assert counted("solisync_http_requests_total", asked) == before + 1
    grave = {"limit": "admin_grave"}
    before = counted("solisync_rate_limit_refusals_total", grave)
    answers = [await console.ask("POST", f"/players/{NOBODY}/password-link", WHY) for _ in range(11)]
    assert [answer.status for answer in answers].count(429) == 1
    assert counted("solisync_rate_limit_refusals_total", grave) == before + 1
