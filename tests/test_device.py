"""The device of a player, which keeps its session and its games in a directory (docs/clients.md)."""

import json
import os
import stat

import pytest
from msgspec import Struct
from twisted.internet.defer import Deferred

from solisync.client import ApiError
from solisync.client.device import Device, Store, StoreInUse
from solisync.client.journal import FinishedGame, add_game
from solisync.rules.accounts import TokenPair
from tests.harness.constants import PASSWORD, ROOT
from tests.harness.http_requests import http_client, new_address

REPLAY = json.loads((ROOT / "docs" / "replays" / "won_draw_one.json").read_text("utf-8"))


class Number(Struct):
    """A value to store."""

    number: int = 0


def game(number, *, won=True):
    """A finished game."""
    return FinishedGame(
        game_id=f"00000000-0000-4000-8000-{number:012}", won=won, score=670, seconds=184, draw_mode="DrawOne"
    )


class Unreachable:
    """A network without the service."""

    async def request(self, *arguments, **options):
        raise ConnectionError


@pytest.fixture
def device(server, tmp_path):
    """Open the device in `tmp_path`, as after a start; the one before is closed."""
    opened = []

    def device(**options):
        if opened:
            opened.pop().close()
        http = http_client(keep=server.keeps_connections)
        given = {"http": http, "headers": {"X-Forwarded-For": new_address()}} | options
        opened.append(Device(server.url, tmp_path / "device", **given))
        return opened[-1]

    yield device
    opened.pop().close()


def test_store_keeps_the_old_value_if_it_can_not_store_the_new_one(tmp_path, monkeypatch):
    """A full disk or a crash leaves a whole file."""
    store = Store(tmp_path, Number)
    store.value.number = 1
    store.save()
    store.value.number = 2
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.save()
    store.close()
    reopened = Store(tmp_path, Number)
    assert reopened.value.number == 1
    reopened.close()


def test_store_belongs_to_one_process(tmp_path):
    """A second one gets an error, until the first one has closed the store."""
    store = Store(tmp_path, Number)
    with pytest.raises(StoreInUse):
        Store(tmp_path, Number)
    store.close()
    Store(tmp_path, Number).close()


def test_store_is_readable_by_its_owner_alone(tmp_path):
    """Other users of the machine don't get the tokens."""
    store = Store(tmp_path, Number)
    store.save()
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    store.close()


async def test_session_and_games_survive_a_restart(device):
    """A new process continues with both."""
    ann = device()
    await ann.register("ann", PASSWORD)
    ann.finish(game(1), REPLAY)
    ann = device()
    assert ann.signed_in
    await ann.sync()
    assert (await ann.pull()).merged.stats.games_won == 1
    assert [replay.id for replay in (await ann.own_replays()).replays] == [ann.replay_of(game(1).game_id)]


async def test_games_finished_offline_are_in_the_progress(device):
    """The device shows them before the service has them."""
    ann = device()
    await ann.register("ann", PASSWORD)
    assert ann.progress() is None
    await ann.sync()
    ann = device(http=Unreachable())
    ann.finish(game(1))
    ann.finish(game(2, won=False))
    with pytest.raises(ConnectionError):
        await ann.sync()
    stats = ann.progress().stats
    assert (stats.games_played, stats.games_won, stats.lifetime_score) == (2, 1, 670)


async def test_refused_push_is_made_again_from_a_new_pull(device):
    """A 400 stores nothing, so the games count when the cause is gone."""
    wrong = [True]

    def add(payload, finished):
        progress = add_game(payload, finished)
        goals = {"": 1} if wrong else {}  # a name without letters isn't a valid one
        return type(progress)(**fields_of(progress) | {"progress": with_goals(progress.progress, goals)})

    ann = device(add=add)
    await ann.register("ann", PASSWORD)
    ann.finish(game(1))
    with pytest.raises(ApiError) as caught:
        await ann.sync()
    assert caught.value.code == "bad_field"
    wrong.clear()
    await ann.sync()
    assert (await ann.pull()).merged.stats.games_played == 1


def fields_of(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def with_goals(progress, goals):
    return type(progress)(**fields_of(progress) | {"weekly_goal_progress": goals})


async def test_refused_replay_does_not_hold_up_others(device):
    """The error is raised after the others are uploaded."""
    ann = device()
    await ann.register("ann", PASSWORD)
    ann.finish(game(1), {"mode": "Classic"})
    ann.finish(game(2), REPLAY)
    with pytest.raises(ApiError) as caught:
        await ann.sync()
    assert caught.value.code == "bad_field"
    assert len((await ann.own_replays()).replays) == 1
    assert ann.progress().stats.games_won == 2


async def test_ended_session_signs_out_and_keeps_the_games(device):
    """The games count after the next login, also one that the player finishes after the end."""
    ann = device()
    await ann.register("ann", PASSWORD)
    ann.finish(game(1))
    refused = TokenPair(ann.tokens.access_token + "0", "refused")
    await ann.end_sessions()
    ann.tokens = refused
    for code in ("unauthorized", "signed_out"):
        with pytest.raises(ApiError) as caught:
            await ann.sync()
        assert (caught.value.code, ann.signed_in) == (code, False)
    ann = device()
    ann.finish(game(2))
    await ann.login("ann", PASSWORD)
    await ann.sync()
    assert (await ann.pull()).merged.stats.games_played == 2


async def test_account_that_the_service_does_not_know_keeps_session_and_games(device, monkeypatch):
    """The service may run on another database for a while."""
    ann = device()
    await ann.register("ann", PASSWORD)
    ann.finish(game(1))
    call = ann._call

    async def unknown(*arguments, **options):
        raise ApiError(404, "user not found", code="user_not_found")

    monkeypatch.setattr(ann, "_call", unknown)
    with pytest.raises(ApiError):
        await ann.sync()
    monkeypatch.setattr(ann, "_call", call)
    ann = device()
    await ann.sync()
    assert (await ann.pull()).merged.stats.games_played == 1


async def test_claim_repeated_with_another_password_is_refused(device):
    """The first password is the one that counts, also when its answer got lost."""
    guest = device()
    await guest.guest()
    await guest.claim("ann", PASSWORD)
    await guest.claim("ann", PASSWORD)
    with pytest.raises(ApiError) as caught:
        await guest.claim("ann", "another one")
    assert caught.value.code == "not_a_guest"


async def test_game_without_a_player_is_refused(device):
    """After a logout, the game may be another player's."""
    ann = device()
    await ann.register("ann", PASSWORD)
    await ann.logout()
    with pytest.raises(ApiError) as caught:
        ann.finish(game(1))
    assert caught.value.code == "signed_out"


def during_the_login(device, action):
    """Call a function when the device logs in, before it has the answer."""
    call = device._call

    async def wrapped(method, path, *arguments, **options):
        if path == "/api/auth/login":
            action()
        return await call(method, path, *arguments, **options)

    device._call = wrapped


async def test_games_finished_during_a_join_are_the_players(device, server):
    """The guest, who finished them, no longer exists."""
    await server.player("ann")
    guest = device()
    await guest.guest()
    guest.finish(game(1), REPLAY)
    during_the_login(guest, lambda: guest.finish(game(2)))
    await guest.join_as("ann", PASSWORD)
    guest.finish(game(3))
    await guest.sync()
    assert (await guest.me()).username == "ann"
    assert (await guest.pull()).merged.stats.games_played == 3


async def test_join_waits_for_a_refresh_of_the_guest(device, server):
    """The refresh spends the guest's token, and only its answer has the next one."""
    await server.player("ann")
    guest = device()
    await guest.guest()
    guest.finish(game(1))
    refreshes = []
    during_the_login(guest, lambda: refreshes.append(Deferred.fromCoroutine(guest.refresh())))
    await guest.join_as("ann", PASSWORD)
    await refreshes[0]
    assert (await guest.me()).username == "ann"
    assert (await guest.pull()).merged.stats.games_played == 1
