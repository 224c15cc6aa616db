"""`solisync progress restore`: an export's progress is merged into a player's, as a push is."""

import json

import pytest
from msgspec import convert

from solisync.errors import FatalError
from solisync.rules.games import SentGame
from solisync.rules.shapes import NIL
from tests.harness.games import game
from tests.harness.payloads import progress_of


@pytest.fixture
def file(tmp_path):
    return tmp_path / "export.json"


async def push(server, client, **changes):
    """Push progress, and return the games in the answer."""
    payload = progress_of(**changes)
    answer = await server.ask("POST", "/api/sync/push", body=payload, bearer=client.tokens.access_token)
    assert answer.status == 200
    return answer.json["merged"]["stats"]["games_played"]


async def lost(server, administrate, file, client, games, left):
    """Export a player with this many games, and bring the server back to a state with fewer, as an old backup does."""
    await push(server, client, stats__games_played=left)
    states = server.sql("SELECT payload, counted FROM sync_states")
    known = server.sql("SELECT session_id, pushed, answers FROM known_states")
    await push(server, client, stats__games_played=games)
    file.write_text(await administrate("users", "export", "ann"), "utf-8")
    server.sql("UPDATE sync_states SET payload = %s, counted = %s", states[0])
    for session, pushed, answers in known:
        server.sql(
            "UPDATE known_states SET pushed = %s, answers = %s WHERE session_id = %s", (pushed, answers, session)
        )


@pytest.fixture
def restore(administrate, file):
    async def restore(*words, **given):
        return await administrate("progress", "restore", "ann", "--from", str(file), *words, **given)

    return restore


async def test_restore_brings_games_back_once(server, administrate, file, restore):
    """The device that still has these games adds only those that it plays afterwards; a repetition changes nothing."""
    ann = await server.player("ann")
    await lost(server, administrate, file, ann, games=110, left=100)
    assert await restore("--reason", "request") == "'ann' now has 110 games\n"
    assert await restore() == "'ann' had all of it\n"
    assert await push(server, ann, stats__games_played=110) == 110
    assert await push(server, ann, stats__games_played=112) == 112
    acts = (
        "SELECT reason, before, after FROM admin_acts JOIN admin_notes ON act_id = admin_acts.id WHERE act = 'restore'"
    )
    assert server.sql(acts) == [("request", "100 games", "110 games")]


async def test_restore_keeps_games_that_were_played_since(server, administrate, file, restore):
    """Nothing is lowered, and unlocks of both stay."""
    ann = await server.player("ann")
    await lost(server, administrate, file, ann, games=110, left=100)
    assert await push(server, ann, stats__games_played=130, progress__unlocked_card_backs=[0, 3]) == 130
    assert await restore() == "'ann' had all of it\n"
    assert await push(server, ann, stats__games_played=130) == 130


async def test_restore_notifies_the_streams_of_the_player(server, administrate, file, restore):
    """Devices pull the restored progress."""
    ann = await server.player("ann")
    await lost(server, administrate, file, ann, games=9, left=2)
    before = server.sql("SELECT revision FROM sync_states")
    done = (await restore("--json")).json
    assert (done["changed"], done["games"], done["username"]) == (True, 9, "ann")
    assert server.sql("SELECT revision FROM sync_states") == [(before[0][0] + 1,)]
    assert (await ann.pull()).merged.stats.games_played == 9


async def test_export_of_another_account_needs_the_option(server, administrate, file, restore):
    """The account of the export may have been deleted, and its name taken again."""
    old = await server.player("ann")
    await push(server, old, stats__games_played=50)
    file.write_text(await administrate("users", "export", "ann"), "utf-8")
    await old.delete_account()
    await server.player("ann")
    with pytest.raises(FatalError, match="is the export of another account, 'ann' with the id"):
        await restore()
    assert await restore("--other-account") == "'ann' now has 50 games\n"


async def test_games_of_an_export_count_once(server, administrate, file, restore):
    """The backup had one of three games; one was sent again, and one was played since. Then the device sends all."""
    ann = await server.player("ann")
    first, second, third, fourth = (convert(game(), SentGame) for _ in range(4))
    await ann.count_games(first)
    state = server.sql("SELECT payload, counted FROM sync_states")
    await ann.count_games(second, third)
    file.write_text(await administrate("users", "export", "ann"), "utf-8")
    server.sql("UPDATE sync_states SET payload = %s, counted = %s", state[0])
    server.sql("DELETE FROM games WHERE game_id <> %s", (first.game_id,))
    server.sql("UPDATE game_memory SET games = 1")
    await ann.count_games(second, fourth)
    assert await restore() == "'ann' now has 4 games\n"
    assert await restore() == "'ann' had all of it\n"
    answer = await ann.count_games(first, second, third, fourth)
    assert not any(each.counted for each in answer.games)
    assert (answer.merged.stats.games_played, answer.merged.stats.lifetime_score) == (4, 2400)


async def test_game_that_an_export_has_twice_counts_once(server, administrate, file, restore):
    """The games of several exports may have been put together by hand."""
    ann = await server.player("ann")
    await ann.count_games(convert(game(), SentGame))
    state = json.loads(await administrate("users", "export", "ann"))
    state["games"] *= 2
    file.write_text(json.dumps(state), "utf-8")
    server.sql("DELETE FROM sync_states; DELETE FROM games; DELETE FROM game_memory")
    assert await restore() == "'ann' now has 1 games\n"
    assert server.sql("SELECT games FROM game_memory") == [(1,)]


async def test_game_that_was_counted_under_a_fast_clock_is_restored_once(server, administrate, file, restore):
    """An export without this game would count it again, beside the totals."""
    ann, first, second = await server.player("ann"), convert(game(), SentGame), convert(game(), SentGame)
    await ann.count_games(first)
    state = server.sql("SELECT payload, counted FROM sync_states")
    await ann.count_games(second)
    server.sql("UPDATE games SET counted_at = counted_at + interval '30 days'")
    file.write_text(await administrate("users", "export", "ann"), "utf-8")
    server.sql("UPDATE sync_states SET payload = %s, counted = %s", state[0])
    server.sql("DELETE FROM games WHERE game_id <> %s", (first.game_id,))
    assert await restore() == "'ann' now has 2 games\n"
    assert (await ann.count_games(first, second)).merged.stats.games_played == 2


async def test_game_that_ended_with_a_forgotten_one_is_not_restored(server, administrate, file, restore):
    """The service may have counted this game before it forgot others."""
    ann, first = await server.player("ann"), convert(game(), SentGame)
    await ann.count_games(first)
    file.write_text(await administrate("users", "export", "ann"), "utf-8")
    server.sql("UPDATE game_memory SET forgotten_until = (SELECT max(ended_at) FROM games), games = 0")
    server.sql("DELETE FROM games")
    assert await restore() == "'ann' had all of it\n"


async def test_games_of_an_export_are_known_to_an_empty_account(server, administrate, file, restore):
    ann, first = await server.player("ann"), convert(game(), SentGame)
    await ann.count_games(first)
    file.write_text(await administrate("users", "export", "ann"), "utf-8")
    server.sql("TRUNCATE sync_states, games, game_memory")
    assert await restore() == "'ann' now has 1 games\n"
    assert (await ann.count_games(first)).merged.stats.games_played == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "can't read .*: No such file or directory"),
        ("", "is not an export of solisync"),
        ("\udcff", "is not an export of solisync"),
        ("[]", "is not an export of solisync"),
        ('{"progress": {}}', "is not an export of solisync"),
        (True, "has no progress"),
        (progress_of(stats__games_played=-1), "request body: .*games_played"),
    ],
)
async def test_unusable_export_is_refused(server, administrate, file, restore, text, reason):
    """The reason is one line, and nothing is stored."""
    await server.player("ann")
    file.write_text(await administrate("users", "export", "ann"), "utf-8")
    if text is None:
        file.unlink()
    elif isinstance(text, str):
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    elif text is not True:
        file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | {"progress": text}), "utf-8")
    with pytest.raises(FatalError, match=reason):
        await restore()
    assert server.sql("SELECT count(*) FROM sync_states") == [(0,)]
    assert NIL not in str(server.sql("SELECT act FROM admin_acts"))
