"""The listed replays of one player, for all clients (docs/protocol.md "Replays")."""

from datetime import UTC, datetime

import pytest

from solisync.rules.queries import ListPosition
from tests.harness.payloads import replay

NOBODY = {"error": "player not found"}
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
    """Return the ids on all pages."""
    ids, position = [], None
    while True:
        page = await client.player_replays(name, limit, position)
        ids += [each.id for each in page.replays]
        position = page.next
        if position is None:
            return ids


async def test_list_has_only_listed_replays_of_the_player(server):
    """Replays come newest first, with the fields of the recent list."""
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


async def test_each_page_leads_to_the_next(server):
    """The last page has null. A page after the end, or with limit 0, is empty."""
    client = await server.player("ann")
    server.sql(FILL, ((await client.me()).id, 15))
    listed = "SELECT id::text FROM replays WHERE unlisted IS NULL ORDER BY received_at DESC, id DESC"
    stored = [each for (each,) in server.sql(listed)]
    for limit in (1, 3, 9, 10, 50):
        assert await all_pages(client, "ann", limit) == stored
    for query in ("?limit=0", f"?before={BEGINNING}"):
        assert (await ask(server, "ann", query)).json == {"replays": [], "next": None}
    assert len((await ask(server, "ann", "?limit=999")).json["replays"]) == 10


async def test_player_without_listed_replays_looks_unknown(server):
    """Unknown, new, unlisted and deleted players get the same 404 on every page."""
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
    assert answers[0].headers["error-code"] == "player_not_found"
    await bob.upload_replay(replay())
    assert (await ask(server, "bob")).status == 200


@pytest.mark.parametrize("path", ["/api/players//replays", "/api/players/a%6Eb/replays", "/api/players/ann/replays/"])
async def test_other_paths_are_404(server, path):
    """The path has no name, a percent-encoded name, or a trailing slash."""
    assert (await server.ask("GET", path)).headers["error-code"] == "not_found"
