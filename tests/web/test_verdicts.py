"""Verdicts and timelines over HTTP (docs/protocol.md "Replays"); tests/checking has the checks themselves."""

import msgspec
import pytest

from solisync.klondike import Reason
from solisync.rules.replays import VerdictAnswer
from solisync.rules.texts import verdict_text
from tests.checking.uploads import game, upload
from tests.harness.service import refused

MISSING = "00000000-0000-4000-8000-000000000000"
STORE = """
    INSERT INTO verdicts (replay_id, status, reason, ruleset, undos, score, moves, checked_at, engine)
    VALUES (%s, %s, %s, %s, %s, %s, %s, '2026-11-22 10:00:00.5+00', 1)
"""
VERIFIED = ("verified", None, "2026-05-19", 3, 650, 120)


async def show(server, replay_id, what="verdict", **options):
    return await server.ask("GET", f"/api/replays/{replay_id}/{what}", **options)


def test_page_of_a_replay_has_words_for_every_reason():
    """Players read a sentence about each result of the engine."""
    refuted = VerdictAnswer(
        status="refuted", ruleset=None, undos=None, score=None, moves=None, reason=None, checked_at=None
    )
    sentences = {verdict_text(msgspec.structs.replace(refuted, reason=reason.value)) for reason in Reason}
    assert len(sentences) == len(Reason)


async def test_replay_is_pending_until_it_is_checked(server):
    """Every client may ask without a token; caches ask each time."""
    client = await server.player("ann")
    replay_id = await upload(server, client, game())
    answer = await show(server, replay_id)
    assert answer.headers["cache-control"] == "no-cache"
    names = ["status", "ruleset", "undos", "score", "moves", "reason", "checked_at"]
    assert list(answer.json) == names
    assert answer.json == dict.fromkeys(names) | {"status": "pending"}
    assert (await client.verdict(replay_id)).status == "pending"


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (VERIFIED, {"ruleset": "2026-05-19", "undos": 3, "score": 650, "moves": 120}),
        (("refuted", "no_explanation", None, None, None, None), {"reason": "no_explanation"}),
        (("undecided", "crashed", None, None, None, None), {"reason": "crashed"}),
        (("unreadable", "no_seed", None, None, None, None), {"reason": "no_seed"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
async def test_verdict_is_returned_as_it_is_stored(server, stored, shown):
    """The reply has the time of the check, and null in unused fields. The recent list has only the status."""
    replay_id = await upload(server, await server.player("ann"), game())
    server.sql(STORE, (replay_id, *stored))
    nothing = dict.fromkeys(["ruleset", "undos", "score", "moves", "reason"])
    checked_at = {"checked_at": "2026-11-22T10:00:00.500000Z"}
    assert (await show(server, replay_id)).json == {"status": stored[0], **nothing, **shown, **checked_at}


async def test_recent_list_has_the_status(server):
    """Unchecked replays have one too."""
    client = await server.player("ann")
    first, second = await upload(server, client, game()), await upload(server, client, game())
    server.sql(STORE, (first, *VERIFIED))
    third = await upload(server, client, game())  # an upload ends the remembered list
    lines = (await server.ask("GET", "/api/replays/recent")).json
    assert {line["id"]: line["verdict"] for line in lines} == {first: "verified", second: "pending", third: "pending"}
    assert list(lines[0])[-1] == "verdict"


@pytest.mark.parametrize("stored", [None, VERIFIED, ("refuted", "score", None, None, None, None)])
async def test_timeline_of_an_unplayable_replay_is_a_409(server, stored):
    """The replay is pending, not verified, or too long."""
    client = await server.player("ann")
    replay_id = await upload(server, client, game())
    if stored is not None:
        server.sql(STORE, (replay_id, *stored))
    for headers in ({}, {"If-None-Match": "*"}):
        answer = await show(server, replay_id, "timeline", headers=headers)
        assert (answer.status, answer.json) == (409, {"error": "replay can not be played back"})
        assert answer.headers["error-code"] == "not_playable"
        assert answer.headers["cache-control"] == "no-store"
    assert await refused(client.timeline(replay_id)) == (409, "replay can not be played back")


@pytest.mark.parametrize("what", ["verdict", "timeline"])
@pytest.mark.parametrize("path", ["x", MISSING, MISSING[:-1] + "G"])
async def test_unknown_replay_is_a_404(server, path, what):
    """The id is unknown or malformed."""
    answer = await show(server, path, what, headers={"If-None-Match": "*"})
    assert (answer.status, answer.json) == (404, {"error": "replay not found"})


async def test_deleting_a_replay_deletes_its_verdict(server):
    """The replay leaves the queue of checks too."""
    client = await server.player("ann")
    replay_id = await upload(server, client, game())
    server.sql(STORE, (replay_id, *VERIFIED))
    await client.delete_account()
    for what in ("verdict", "timeline"):
        assert (await show(server, replay_id, what)).status == 404
    assert server.sql("SELECT (SELECT count(*) FROM verdicts), (SELECT count(*) FROM replay_checks)") == [(0, 0)]
