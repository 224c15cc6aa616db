"""The record of acts in the console, its filters, and which acts can be reversed (docs/console.md "Record")."""

import pytest
import pytest_twisted

from tests.harness.housekeeping import make_housekeeping
from tests.harness.payloads import replay

WHY = {"reason": "spam"}
NOBODY = "0b0f4c7e-6a5d-4f7e-9a30-1d2c3b4a5f60"


@pytest_twisted.async_fixture
async def ann(console, server):
    """A player with an entry and a replay, and an admin who has signed in: the paths of both."""
    await console.sign_in("root")
    client = await server.player("ann")
    await client.opt_in("Rude")
    replay_id = await client.upload_replay(replay())
    return f"/players/{(await client.me()).id}", f"/replays/{replay_id}"


async def act(console, path, **body):
    answer = await console.ask("PUT", path, WHY | body)
    assert answer.json["changed"] is True, answer
    return answer.json


async def acts(console, query=""):
    return (await console.get(f"/acts?{query}"))["acts"]


async def test_record_is_filtered(console, server, administrate, ann):
    """The filters are admin, actor, act, player, reason and time, also together; the command has the same ones."""
    player, _ = ann
    await act(console, f"{player}/lock", locked=True)
    await act(console, f"{player}/lock", locked=False, reason="name")
    await administrate("users", "lock", "ann", "--reason", "legal")
    other = (await (await server.player("bob")).me()).id
    await act(console, f"/players/{other}/suspension", suspended=True)
    newest, *_, oldest = [each["at"] for each in await acts(console)]

    async def found(query):
        return [each["act"] for each in await acts(console, query)]

    assert await found("admin=root") == ["suspend", "unlock", "lock"]
    assert await found("actor=admin:root&reason=name") == ["unlock"]
    assert await found("reason=legal") == ["lock"]
    assert await found("player=ann&act=lock") == await found(f"player={player[9:]}&act=lock") == ["lock", "lock"]
    assert await found(f"from={newest}") == ["suspend"]
    assert await found(f"from={oldest}&to={newest}") == ["lock", "unlock", "lock"]
    assert await found("to=2026-01-01") == []
    for options in (("--actor", "admin:root"), ("--reason", "legal"), ("--since", newest), ("--until", newest)):
        listed = (await administrate("acts", "list", "--json", *options)).records
        query = {"--actor": "actor", "--reason": "reason", "--since": "from", "--until": "to"}[options[0]]
        assert listed == await acts(console, f"{query}={options[1]}"), options
    listed = (await administrate("acts", "list", "--json", "--user", "ann", "--act", "lock", "--limit", "1")).records
    assert [(each["act"], each["username"], each["reason"]) for each in listed] == [("lock", "ann", "legal")]


@pytest.mark.parametrize(
    "query",
    ["act=fun", "admin=nobody", "player=nobody", f"player={NOBODY}", "reason=fun", "from=yesterday", "to=2026-02-30"],
)
async def test_unknown_filter_returns_400(console, ann, query):
    answer = await console.ask("GET", f"/acts?{query}")
    assert (answer.status, answer.headers["error-code"]) == (400, "bad_query")


async def test_removed_admin_is_still_found_by_acts(console, server, administrate, ann):
    player, _ = ann
    await act(console, f"{player}/lock", locked=True)
    server.sql("DELETE FROM admins")
    server.sql("INSERT INTO admins (name) VALUES ('eve')")
    await console.sign_in("eve")
    assert [each["act"] for each in await acts(console, "admin=root")] == ["lock"]


async def test_act_names_its_inverse_while_the_effect_stands(console, server, ann):
    """The newest act of a pair has one, unless the state has changed in another way since."""
    player, game = ann
    steps = [
        (f"{player}/suspension", {"suspended": True}, {"suspended": False}, {"suspend", "unsuspend"}),
        (f"{player}/lock", {"locked": True}, {"locked": False}, {"lock", "unlock"}),
        (f"{player}/entry", {"visible": False}, {"visible": True}, {"show", "hide"}),
        (f"{player}/entry", {"display_name": "A"}, {"display_name": "Rude"}, {"name"}),
        (f"{player}/username", {"username": "player_1"}, {"username": "ann"}, {"rename"}),
        (f"{game}/listed", {"listed": False}, {"listed": True}, {"list_again", "unlist"}),
    ]
    for path, there, back, pair in steps:
        for body, expected in ((there, back), (back, there), (there, back)):
            answer = await act(console, path, **body)
            first, *others = await acts(console, f"player={player[9:]}")
            assert (first["undo"], first["inverse"] in pair) == (answer["undo"], True)
            assert (answer["undo"]["path"], answer["undo"]["body"]) == (f"/api/admin{path}", expected)
            assert not any(each["inverse"] for each in others if each["act"] in pair), path
    standing = [each["act"] for each in await acts(console) if each["inverse"]]
    assert standing == ["unlist", "rename", "name", "hide", "lock", "suspend"]
    server.sql("DELETE FROM profile_locks; DELETE FROM replays; UPDATE leaderboard SET display_name = 'Chosen'")
    assert [each["act"] for each in await acts(console) if each["inverse"]] == ["rename", "hide", "suspend"]


def state(server):
    """What acts change about the only player and the only replay."""
    return server.sql(
        "SELECT username, visible, display_name, profile_locks IS NULL, until, message, unlisted FROM users"
        " JOIN leaderboard ON leaderboard.user_id = users.id JOIN replays ON replays.user_id = users.id"
        " LEFT JOIN profile_locks ON profile_locks.user_id = users.id"
        " LEFT JOIN suspensions ON suspensions.user_id = users.id"
    )


async def test_undo_restores_the_state_before_the_act(console, server, ann):
    """The request of the record is sent as it is, with a reason; it has an inverse, too."""
    player, game = ann
    await act(console, f"{player}/suspension", suspended=True, until="2999-12-31T12:00:00.000001Z", message="a: b\nc")
    for path, body in [
        (f"{player}/suspension", {"suspended": True, "until": None, "message": "until lifted"}),
        (f"{player}/suspension", {"suspended": False}),
        (f"{player}/lock", {"locked": True}),
        (f"{player}/entry", {"visible": False, "display_name": "A"}),
        (f"{player}/username", {"username": "player_1"}),
        (f"{game}/listed", {"listed": False}),
    ]:
        before = state(server)
        undo = (await act(console, path, **body))["undo"]
        after = state(server)
        assert before != after
        for expected in (before, after):
            answer = await console.ask(undo["method"], undo["path"].removeprefix("/api/admin"), WHY | undo["body"])
            assert answer.json["changed"] is True, answer
            assert state(server) == expected
            undo = answer.json["undo"]


async def test_suspension_whose_time_is_over_has_no_undo(console, server, open_database, reactor, ann):
    """Housekeeping has ended it, or an operator while the retention clock was behind: nothing is left to return to."""
    player, _ = ann
    past = "UPDATE suspensions SET until = now() - interval '1 s'"
    await act(console, f"{player}/suspension", suspended=True)
    server.sql(past)
    await make_housekeeping(open_database(), reactor).prune()
    assert [(each["actor"], each["inverse"], each["undo"]) for each in await acts(console, "act=unsuspend")] == [
        ("service:housekeeping", None, None)
    ]
    await act(console, f"{player}/suspension", suspended=True)
    server.sql(past)
    assert (await act(console, f"{player}/suspension", suspended=False))["undo"] is None


async def test_irreversible_act_has_no_inverse(console, ann):
    player, game = ann
    assert (await console.ask("POST", f"{player}/sessions/end", WHY)).json["changed"]
    assert (await console.ask("POST", f"{game}/delete", WHY)).json["changed"]
    assert [each["inverse"] for each in await acts(console)] == [None, None]
