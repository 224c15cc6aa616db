"""`solisync leaderboard` and `solisync replays`: removing entries and replays from public lists."""

from uuid import uuid4

import pytest

from solisync.errors import NotFound
from tests.harness.service import refused

REPLAY = (
    b'{"mode": "Classic", "draw_mode": "DrawOne", "final_score": %d, "time_seconds": 9, "recorded_at": "2026-01-01"}'
)


def entry(server):
    return server.sql("SELECT visible, best_score FROM leaderboard")


async def test_hidden_entry_keeps_its_bests_and_improves(administrate, server):
    """Hiding and showing twice keeps the entry, with the bests achieved while it was hidden."""
    ann = await server.player("ann")
    await ann.opt_in("Ann")
    await ann.upload_replay(REPLAY % 10)
    for _ in range(2):
        assert "is hidden" in await administrate("leaderboard", "hide", "ann")
        assert entry(server) == [(False, 10)]
    await ann.upload_replay(REPLAY % 20)
    for _ in range(2):
        assert "is visible" in await administrate("leaderboard", "show", "ann")
        assert entry(server) == [(True, 20)]
    await administrate("leaderboard", "hide", "ann")
    await ann.opt_in("Ann again")
    assert entry(server) == [(True, 20)]


async def test_deleted_replays_are_gone_and_bests_stay(administrate, server):
    """The service no longer finds them; other replays, and the entry that they improved, stay."""
    ann = await server.player("ann")
    await ann.opt_in("Ann")
    first, second, third = [await ann.upload_replay(REPLAY % score) for score in (10, 30, 20)]
    done = await administrate("replays", "delete", first.upper(), second, second, "--yes", "--json")
    assert sorted(done.json["deleted"]) == sorted([first, second])
    for replay_id in (first, second):
        assert await refused(ann.replay(replay_id)) == (404, "replay not found")
    assert await ann.replay(third) == REPLAY % 20
    assert entry(server) == [(True, 30)]


async def test_missing_replays_are_named(administrate, server):
    """The command deletes the others."""
    ann = await server.player("ann")
    replay_id, missing = await ann.upload_replay(REPLAY % 10), str(uuid4())
    with pytest.raises(NotFound, match=f"^no such replay: {missing}, nonsense$"):
        await administrate("replays", "delete", missing, replay_id, "nonsense", "--yes")
    assert server.sql("SELECT count(*) FROM replays") == [(0,)]
