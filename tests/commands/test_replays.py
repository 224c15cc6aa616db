"""`solisync replays check` and `solisync replays show` (docs/administration.md "Leaderboard and replays")."""

import re
from uuid import uuid4

import pytest

from solisync.errors import NotFound
from solisync.klondike import ENGINE_VERSION, check
from tests.checking.uploads import encoded, game, upload
from tests.harness.payloads import replay


def settle(server, replay_id, body):
    """Store a verdict on a replay as a checker would."""
    verdict = check(body)
    server.sql(
        "INSERT INTO verdicts (replay_id, status, ruleset, undos, score, moves, checked_at, engine, undo_places)"
        " VALUES (%s, %s, %s, %s, %s, %s, now(), %s, %s)",
        (
            replay_id,
            verdict.status.value,
            verdict.ruleset,
            verdict.undos,
            verdict.score,
            verdict.moves,
            ENGINE_VERSION,
            list(verdict.undo_places) or None,
        ),
    )
    server.sql("DELETE FROM replay_checks")


async def test_replay_is_shown_with_its_verdict_and_boards(administrate, server):
    """Text draws the deal or every board, undos included; JSON has only the facts."""
    body = encoded(game(undo=True))
    replay_id = await upload(server, await server.player("ann"), body)
    assert (await administrate("replays", "show", replay_id, "--json")).json["status"] == "pending"
    assert (await administrate("replays", "show", replay_id, "--json")).json["queue"] == "literal"
    settle(server, replay_id, body)
    verdict = check(body)
    shown = (await administrate("replays", "show", replay_id.upper(), "--json")).json
    assert (shown["status"], shown["undos"], shown["username"]) == ("verified", verdict.undos, "ann")
    assert (shown["queue"], shown["engine"]) == (None, ENGINE_VERSION)
    text = await administrate("replays", "show", replay_id)
    assert text.count("foundations") == 1
    assert f"deal {shown['seed']}" in text
    boards = await administrate("replays", "show", replay_id, "--boards")
    assert boards.count("foundations") == 1 + verdict.moves + verdict.undos
    assert boards.count("\nundo, score ") == verdict.undos
    (foundations,) = re.findall(rf"score {verdict.score}\nfoundations (K.) (K.) (K.) (K.)\n", boards)
    assert set(foundations) == {"K♣", "K♦", "K♥", "K♠"}


async def test_unreadable_replay_is_shown_without_boards(administrate, server):
    """An id without a replay is an error."""
    replay_id = await upload(server, await server.player("ann"), replay())
    assert "pending" in await administrate("replays", "show", replay_id)
    for missing in (str(uuid4()), "nonsense"):
        with pytest.raises(NotFound, match=f"^no such replay: {missing}$"):
            await administrate("replays", "show", missing)


async def test_given_replays_are_queued_for_a_check(administrate, server):
    """Without --again only replays without a verdict are queued; missing replays are named."""
    ann = await server.player("ann")
    body = encoded(game())
    first, second = await upload(server, ann, body), await upload(server, ann, body)
    settle(server, first, body)
    missing = str(uuid4())
    done = await administrate("replays", "check", first, second, missing, "--json", fails=NotFound)
    assert done.json["added"] == [second]
    assert server.sql("SELECT replay_id::text, ahead FROM replay_checks") == [(second, 0)]
    assert "queued 1 replay for checking" in await administrate("replays", "check", "--again", first)
    assert server.sql("SELECT count(*) FROM replay_checks") == [(2,)]
    assert server.sql("SELECT status FROM verdicts") == [("verified",)]


async def test_checking_all_replays_restarts_the_backlog_sweep(administrate, server):
    """With --again the sweep includes replays that have a verdict."""
    await administrate("replays", "check")
    position = "SELECT received_at = 'infinity', checked_before = '-infinity' FROM replay_sweep"
    assert server.sql(position) == [(True, True)]
    server.sql("UPDATE replay_sweep SET received_at = '-infinity'")
    assert "queued all replays for checking" in await administrate("replays", "check", "--again")
    assert server.sql(position) == [(True, False)]
