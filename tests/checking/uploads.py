"""Replays to check: won games of the game's own engine, and helpers for them."""

import copy
import json
from uuid import uuid4

from tests.harness.concurrency import until
from tests.harness.processes import children, command_line
from tests.klondike.vectors import wins

SEARCH_FOR_ALL_THERE_IS = 3_000  # clicks on the stock, all undone: no search ends within 5 s


def checkers(pid):
    """Return the checker processes of a process."""
    return {child for child in children(pid) if b"checker" in command_line(child)}


def game(number=0, *, undo=False, **changes):
    """Return a won game as a client uploads it; with `undo`, one in which moves were undone."""
    return {**wins("2026-05-19", undo=undo)[number]["replay"], **changes}


def encoded(replay):
    return json.dumps(replay).encode()


def endless():
    """Return a replay for which the search for undos finds no end."""
    replay = copy.deepcopy(wins("2026-05-01", undo=True)[0]["replay"])
    replay["moves"][5:5] = ["StockClick"] * SEARCH_FOR_ALL_THERE_IS
    return {**replay, "final_score": replay["final_score"] + 5}


def refuted():
    """Return a replay that claims an impossible score."""
    return game(final_score=game()["final_score"] + 1)


async def upload(server, client, replay):
    """Upload a replay; return its id."""
    body = replay if isinstance(replay, bytes) else encoded(replay)
    answer = await server.ask("POST", "/api/replays", body=body, bearer=client.tokens.access_token)
    assert answer.status == 200, answer
    return answer.json["id"]


def insert(server, user_id, *, count=1, body="{}", age="0 s"):
    """Insert replays as a node of version 0.1.0 does, which doesn't queue them; return their ids, oldest first."""
    ids = [str(uuid4()) for _ in range(count)]
    for number, replay_id in enumerate(ids):
        server.sql(
            "INSERT INTO replays VALUES (%s, %s, now() - %s::interval + %s * interval '1 ms', %s, 2, 'Zen', 'DrawOne',"
            " '1', '1', NULL, '2026-01-01')",
            (replay_id, user_id, age, number, body),
        )
    return ids


async def verdict(server, replay_id):
    """Return the current verdict."""
    answer = await server.ask("GET", f"/api/replays/{replay_id}/verdict")
    assert answer.status == 200
    return answer.json


async def checked(reactor, server, *ids, seconds=45):
    """Wait until each of the replays has a verdict; return the first one's."""
    await until(
        reactor,
        lambda: (
            server.sql("SELECT count(*) FROM verdicts WHERE replay_id = ANY (%s::uuid[])", (list(ids),))
            == [(len(ids),)]
        ),
        seconds,
    )
    return await verdict(server, ids[0])
