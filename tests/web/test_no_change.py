"""A request that changes nothing has no consequences, and a change lists the boards that it concerns."""

from dataclasses import replace
from itertools import count

import msgspec
import pytest

from solisync.acts import players, profiles, replays
from solisync.events.notices import BoardsChanged, SessionsEnded
from tests.harness.acting import operator
from tests.harness.boards import verified
from tests.harness.constants import PASSWORD
from tests.harness.payloads import IMAGES

REPLAY = msgspec.json.encode(
    {"mode": "Classic", "draw_mode": "DrawOne", "final_score": 1, "time_seconds": 1, "recorded_at": "2026-01-01"}
)
DAY, SEED_OF_NO_DAY = "daily/2026-04-26", 1


@pytest.fixture
def consequences(server):
    """Run a request; return its notices, whether a list is forgotten, and its events in the history."""
    bus, history, notices = server.service.parts.bus, server.service.parts.history, []
    numbers = count()
    bus.subscribers.append(notices.append)

    async def consequences(request):
        watcher = await server.player(f"watcher_{next(numbers)}")
        for path in ("/api/leaderboard", "/api/replays/recent"):
            await server.ask("GET", path, bearer=watcher.tokens.access_token)
        await history.flush()
        notices.clear()
        remembered = [cache for cache in server.cached_lists if cache._latest]
        await request()
        events = [happened.event for happened in history._waiting]
        return [*notices], not all(cache._latest for cache in remembered), events

    yield consequences
    bus.subscribers.remove(notices.append)


@pytest.fixture
def operating(reactor, server):
    """Perform an act and return the notices that it publishes."""

    async def operating(act, target, **given):
        notices = []
        async with operator(reactor, server.dsn) as acting:
            await replace(acting, publish=lambda *told: notices.extend(told)).perform(act, target, **given)
        return notices

    return operating


async def deleted(server, ann):
    tokens = ann.tokens
    await ann.delete_account()
    ann.tokens = tokens
    return ann.delete_account


async def unlisted(server, ann):
    replay_id = await ann.upload_replay(REPLAY)
    await ann.set_listed(replay_id, False)
    return lambda: ann.set_listed(replay_id, False)


async def listed(server, ann):
    replay_id = await ann.upload_replay(REPLAY)
    return lambda: ann.set_listed(replay_id, True)


async def hidden(server, ann):
    replay_id = await ann.upload_replay(REPLAY)
    server.sql("UPDATE replays SET held = true, unlisted = false WHERE id = %s", (replay_id,))
    return lambda: ann.set_listed(replay_id, False)


async def uploaded(server, ann):
    body = REPLAY[:-1] + b', "game_id": "00000000-0000-4000-8000-000000000001"}'
    await ann.upload_replay(body)
    return lambda: ann.upload_replay(body)


async def opted_out(server, ann):
    await ann.opt_in("Ann")
    await ann.opt_out()
    return ann.opt_out


async def never_opted_in(server, ann):
    return ann.opt_out


async def opted_in(server, ann):
    await ann.opt_in("Ann")
    return lambda: ann.opt_in(" Ann ")


async def pictured(server, ann):
    await ann.upload_avatar(IMAGES["png"], "image/png")
    return lambda: ann.upload_avatar(IMAGES["png"], "image/png")


async def without_picture(server, ann):
    return ann.delete_avatar


async def without_sessions(server, ann):
    tokens = ann.tokens
    await ann.end_sessions()
    ann.tokens = tokens
    return ann.end_sessions


async def logged_out(server, ann):
    tokens = ann.tokens
    await ann.logout()

    def again():
        ann.tokens = tokens
        return ann.logout()

    return again


@pytest.mark.parametrize(
    "before",
    [
        deleted,
        unlisted,
        listed,
        hidden,
        uploaded,
        opted_out,
        never_opted_in,
        opted_in,
        pictured,
        without_picture,
        without_sessions,
        logged_out,
    ],
    ids=lambda before: before.__name__,
)
async def test_request_without_a_change_has_no_consequences(server, consequences, before):
    """No notice is published, no list is forgotten, and the history gets no row."""
    again = await before(server, await server.player("ann"))
    assert await consequences(again) == ([], False, [])


async def test_login_ends_no_stream_unless_it_ends_a_session(server, consequences):
    """Below a hundred sessions, a login ends none."""
    await server.player("ann")
    assert await consequences(lambda: server.client().login("ann", PASSWORD)) == ([], False, ["login"])


@pytest.mark.parametrize(
    ("score", "opted_in", "boards"),
    [(None, True, ()), (700, False, ()), (600, True, ()), (700, True, (DAY, "verified"))],
    ids=["unverified", "not opted in", "not the best", "the best"],
)
@pytest.mark.parametrize("listed", [False, True])
async def test_listing_a_replay_names_its_boards(server, consequences, score, opted_in, boards, listed):
    """The notice names the boards on which the replay has its player's place; without any, no notice is published."""
    ann = await server.player("ann")
    player = (await ann.me()).id
    if opted_in:
        await ann.opt_in("Ann")
    verified(server.dsn, player, 650)
    replay_id = await ann.upload_replay(REPLAY) if score is None else verified(server.dsn, player, score)
    if listed:
        await ann.set_listed(replay_id, False)
    notices, forgotten, events = await consequences(lambda: ann.set_listed(replay_id, listed))
    assert notices == ([BoardsChanged(boards)] if boards else [])
    assert (forgotten, events) == (True, ["replay listed" if listed else "replay unlisted"])


async def test_change_of_one_draw_mode_names_the_verified_board(server, consequences):
    """The board of the other draw mode, and that of both, stay as they are."""
    ann = await server.player("ann")
    player = (await ann.me()).id
    await ann.opt_in("Ann")
    verified(server.dsn, player, 700)
    replay_id = verified(server.dsn, player, 600, draw_mode="DrawThree", seed=SEED_OF_NO_DAY)
    notices, *_ = await consequences(lambda: ann.set_listed(replay_id, False))
    assert notices == [BoardsChanged(("verified",))]


async def test_deleting_the_proof_of_a_best_score_changes_the_leaderboard(server, consequences):
    """An entry shows whether a replay proves its best score."""
    ann = await server.player("ann")
    await ann.opt_in("Ann")
    replay_id = verified(server.dsn, (await ann.me()).id, 700, seed=SEED_OF_NO_DAY)
    server.sql("UPDATE leaderboard SET best_score = 700")
    notices, *_ = await consequences(lambda: ann.delete_replay(replay_id))
    assert notices == [BoardsChanged(("leaderboard", "verified"))]


async def test_deleting_an_unlisted_replay_forgets_no_list(server, consequences):
    """The lists are remembered, because the replay was on none of them."""
    again = await unlisted(server, ann := await server.player("ann"))
    await again()
    (own,) = (await ann.own_replays()).replays
    assert await consequences(lambda: ann.delete_replay(own.id)) == ([], False, ["replay deleted"])


@pytest.mark.parametrize("request_of", ["opt_out", "delete_account"])
async def test_leaving_player_changes_boards_only_if_on_one(server, consequences, request_of):
    """The notice concerns every board; for a player on no board, none is published."""
    ann, bob = await server.player("ann"), await server.player("bob")
    await ann.opt_in("Ann")
    verified(server.dsn, (await ann.me()).id, 700)
    verified(server.dsn, (await bob.me()).id, 700)
    every = [BoardsChanged()]
    notices, *_ = await consequences(getattr(ann, request_of))
    assert [each for each in notices if not isinstance(each, SessionsEnded)] == every
    if request_of == "delete_account":
        assert [type(each) for each in (await consequences(bob.delete_account))[0]] == [SessionsEnded]


async def test_improved_hidden_entry_changes_no_board(server, consequences):
    """No player sees the entry."""
    ann = await server.player("ann")
    await ann.opt_in("Ann")
    await ann.opt_out()
    notices, *_ = await consequences(lambda: ann.upload_replay(REPLAY))
    assert not [each for each in notices if isinstance(each, BoardsChanged)]


@pytest.mark.parametrize(
    ("act", "given", "boards"),
    [
        (players.suspend, {}, [BoardsChanged()]),
        (profiles.hide, {}, [BoardsChanged()]),
        (profiles.name, {"display_name": "Anna"}, [BoardsChanged()]),
        (players.lock, {}, []),
        (players.rename, {"username": "anna"}, []),
        (players.end_sessions, {}, []),
        (players.delete, {}, [BoardsChanged()]),
        (replays.unlist, {}, [BoardsChanged((DAY, "verified"))]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_act_lists_the_boards_that_it_changes(server, operating, act, given, boards):
    """An act that changes no board publishes no notice about boards."""
    ann = await server.player("ann")
    await ann.opt_in("Ann")
    player = (await ann.me()).id
    replay_id = verified(server.dsn, player, 700)
    notices = await operating(act, player if act.target == "player" else replay_id, **given)
    assert [each for each in notices if isinstance(each, BoardsChanged)] == boards
