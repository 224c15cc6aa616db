"""The steps of a client developer from registration to the board (docs/replays.md "From registration to the board")."""

import json

from tests.checking.uploads import checked
from tests.harness.constants import ROOT
from tests.harness.curl_examples import curl_examples, follow

PAGE = (ROOT / "docs" / "replays.md").read_text("utf-8")
FILES = ROOT / "docs" / "replays"


async def test_example_of_the_api_is_verified_and_on_the_board(checking, reactor):
    """The test runs the commands of the page, compares the values below them, and uses an ordinary checker."""
    server = await checking()

    async def patiently(method, path, headers, body):
        """Ask for a verdict until it is there."""
        if path.endswith("/verdict"):
            await checked(reactor, server, path.split("/")[-2])
        return await server.ask(method, path, headers, body)

    examples = curl_examples(PAGE)
    answers = await follow(server, examples, ask=patiently)
    paths = [command.split("$URL")[1].split()[0] for command, _ in examples]
    assert paths[-3:] == ["/api/replays", "/api/replays/$ID/verdict", '/api/boards/deals/2202/DrawOne?around=me"']
    verdict, board = answers[-2:]
    assert verdict | {"checked_at": "…"} == json.loads(examples[-2][1])
    (entry,) = board["entries"]
    assert (entry["rank"], entry["display_name"], entry["score"]) == (1, "Ann", 670)
    assert (entry["replay_id"], entry["own"]) == (answers[-3]["id"], True)
    interface = (await server.ask("GET", "/api/openapi.json")).json
    example = interface["paths"]["/api/replays"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert example == json.loads((FILES / "won_draw_one.json").read_bytes())
    assert "moves" in interface["components"]["schemas"]["RecordedGame"]["required"]


async def test_published_replays_get_their_verdicts_over_http(checking, reactor):
    """The index lists the verdicts. A seed sent as text is a number in lists."""
    server = await checking()
    client = await server.player()
    index = json.loads((FILES / "index.json").read_text("utf-8"))
    ids = [await client.upload_replay((FILES / entry["file"]).read_bytes()) for entry in index]
    await checked(reactor, server, *ids)
    for entry, replay_id in zip(index, ids, strict=True):
        found = (await server.ask("GET", f"/api/replays/{replay_id}/verdict")).json
        assert found | entry["verdict"] == found, entry["file"]
    by_id = {line.id: line for line in await client.recent_replays(50)}
    as_text = by_id[ids[[entry["file"] for entry in index].index("seed_as_text.json")]]
    assert (as_text.seed, as_text.deal, as_text.verdict) == (1795679829836895765, "1795679829836895765", "verified")
