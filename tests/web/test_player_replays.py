"""The listed replays of one player, for everybody (docs/protocol.md "Replays")."""

from datetime import UTC, datetime

import pytest

from solisync.rules.queries import ListPosition
from tests.harness.payloads import replay

NOBODY = {"error": "user not found"}
BEGINNING = ListPosition(datetime(1970, 1, 2, tzinfo=UTC), "00000000-0000-4000-8000-000000000000").text
FILL = """
    INSERT INTO replays
    SELECT gen_random_uuid(), %s, '2026-11-20T12:00:00.123456Z', '{}', 2, 'Zen', 'DrawOne', '1', '1', NULL,
        '2026-01-01', CASE WHEN n %% 3 = 0 THEN true END
    FROM generate_series(1, %s) AS n
"""


async def ask(server, name, query=""):
    return await server.ask("GET", f"/api/players/{name}/replays{query}")


async def all_pages(client, name, limit):
    """The ids on all pages."""
    ids, position = [], None
    while True:
        page = await client.player_replays(name, limit, position)
        ids += [each.id for each in page.replays]
        position = page.next
        if position is None:
            return ids


async def test_everybody_sees_what_a_player_lists(server):
    """Newest first, as the list of recent replays shows them; unlisted ones and those of others are not there."""
    ann, bob = await server.player("ann"), await server.player("bob")
    spelled = replay(final_score="SCORE").replace(b'"SCORE"', b"1.50")
    first = await ann.upload_replay(spelled)
    unlisted = await ann.upload_replay(replay())
    await bob.upload_replay(replay())
    second = await ann.upload_replay(replay(mode={"Difficulty": "Hard"}))
    await ann.set_listed(unlisted, False)
    answer = await ask(server, "ann")
    assert list(answer.json) == ["replays", "next"]
    assert ([each["id"] for each in answer.json["replays"]], answer.json["next"]) == ([second, first], None)
    assert b'"final_score":1.50' in answer.content
    recent = (await server.ask("GET", "/api/replays/recent")).json
    assert answer.json["replays"] == [line for line in recent if line["username"] == "ann"]
    await ann.set_listed(unlisted, True)
    assert len((await ask(server, "ann")).json["replays"]) == 3


async def test_pages_lead_to_one_another(server):
    """Each says where to go on, the last says null; a page beyond it is empty, and so is one of none."""
    client = await server.player("ann")
    server.sql(FILL, ((await client.me()).id, 15))
    listed = "SELECT id::text FROM replays WHERE unlisted IS NULL ORDER BY received_at DESC, id DESC"
    stored = [each for (each,) in server.sql(listed)]
    for limit in (1, 3, 9, 10, 50):
        assert await all_pages(client, "ann", limit) == stored
    for query in ("?limit=0", f"?before={BEGINNING}"):
        assert (await ask(server, "ann", query)).json == {"replays": [], "next": None}
    assert len((await ask(server, "ann", "?limit=999")).json["replays"]) == 10


async def test_who_lists_nothing_is_not_told_from_nobody(server):
    """Unknown, without a replay, with unlisted ones alone, or deleted: the same 404 on every page."""
    names = ["ann", "bob", "cid", "Ann", "nobody", "x", "a.b", "~" * 40]
    ann, bob, cid = [await server.player(name) for name in names[:3]]
    await ann.set_listed(await ann.upload_replay(replay()), False)
    await cid.upload_replay(replay())
    assert (await ask(server, "cid")).status == 200
    await cid.delete_account()
    own = {"date": "", "x-request-id": ""}
    for query in ("", "?limit=0", f"?before={BEGINNING}"):
        answers = [await ask(server, name, query) for name in names]
        assert {answer.status for answer in answers} == {404}
        assert all(answer.json == NOBODY for answer in answers)
        assert all(answer.headers | own == answers[0].headers | own for answer in answers)
    assert answers[0].headers["error-code"] == "user_not_found"
    await bob.upload_replay(replay())
    assert (await ask(server, "bob")).status == 200


@pytest.mark.parametrize(
    "query", ["limit=-1", "limit=", "limit=1&limit=1", "before=", "before=x", f"before={'A' * 33}"]
)
async def test_a_wrong_query_is_a_400(server, query):
    """Whoever is asked for, also nobody."""
    answer = await ask(server, "nobody", f"?{query}")
    assert (answer.status, answer.headers["error-code"]) == (400, "bad_query")


@pytest.mark.parametrize("path", ["/api/players//replays", "/api/players/a%6Eb/replays", "/api/players/ann/replays/"])
async def test_other_paths_are_none(server, path):
    """No name, a spelling of one with a percent sign, and a slash at the end."""
    assert (await server.ask("GET", path)).headers["error-code"] == "not_found"
