"""Moderation commands: several players and replays, lists, and `users find`."""

import json
from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta

import pytest

from solisync.commands import users as find_command
from solisync.commands.command import time_to_come
from solisync.commands.main import main
from solisync.commands.smoke import PIXEL
from solisync.errors import BadRequest, FatalError, NotFound
from solisync.storage.players import players
from tests.harness.boards import check, verified
from tests.harness.payloads import replay
from tests.harness.service import refused


async def test_suspending_several_players_names_the_missing_ones(administrate, server):
    for name in ("ann", "bob"):
        await server.player(name)
    done = await administrate("users", "suspend", "ann", "nobody", "bob", "--yes", "--json", fails=NotFound)
    assert [record["username"] for record in done.records] == ["ann", "bob"]
    assert server.sql("SELECT count(*) FROM suspensions") == [(2,)]


def test_suspending_several_players_needs_yes_without_a_terminal(capsys):
    """Every command that can't be undone needs --yes."""
    with pytest.raises(SystemExit, match="2"):
        main(["users", "suspend", "ann", "bob"])
    assert "use --yes" in capsys.readouterr().err


@pytest.mark.parametrize("message", ["", " ", "x" * 201, "a\x1bb"])
async def test_suspension_message_has_bounds(administrate, server, message):
    """A message has 1 to 200 characters and no control characters."""
    await server.player("ann")
    await administrate("users", "suspend", "ann", "--message", message, fails=BadRequest)
    assert server.sql("SELECT count(*) FROM suspensions") == [(0,)]


@pytest.mark.parametrize("text", ["2020-01-01", "0d", "yesterday", "soon", "2199-13-01", ""])
def test_suspension_must_end_in_the_future(text):
    """A past time is a usage error."""
    with pytest.raises(ArgumentTypeError):
        time_to_come(text)


def test_suspension_may_be_given_by_its_length():
    """The units are minutes, hours, days and weeks."""
    now = datetime.now(UTC)
    spans = {"30m": timedelta(minutes=30), "12h": timedelta(hours=12), "7d": timedelta(days=7), "2w": timedelta(14)}
    for text, span in spans.items():
        assert timedelta() <= time_to_come(text) - now - span < timedelta(minutes=1)


async def test_releasing_a_replay_keeps_it_hidden_if_its_player_hid_it(administrate, server):
    """A player may hide a replay before or while it is held. After its release the player decides."""
    ann = await server.player("ann")
    before, between, shown = ids = [await ann.upload_replay(replay(moves=number)) for number in range(3)]
    await ann.set_listed(before, False)
    await administrate("replays", "unlist", *ids)
    await ann.set_listed(between, False)
    assert await refused(ann.set_listed(before, True)) == (403, "an operator has locked this")
    done = await administrate("replays", "list-again", *ids)
    assert done == "listed 1 replay; still hidden by their players: 2\n"
    listed = {each.id: each.listed for each in (await ann.own_replays()).replays}
    assert listed == {before: False, between: False, shown: True}
    await ann.set_listed(before, True)
    assert [each.id for each in (await ann.own_replays()).replays if each.listed] == [shown, before]


async def test_replays_are_listed_newest_first_by_verdict(administrate, server):
    """--verdict, --held, --user and --limit narrow the list; --top is a separate list."""
    me = await (await server.player("ann")).me()
    refuted = verified(server.dsn, me.id, 100, status="refuted")
    proved = verified(server.dsn, me.id, 200, received_at=datetime.now(UTC))
    listed = await administrate("replays", "list", "--json")
    assert [record["id"] for record in listed.records] == [proved, refuted]
    await administrate("replays", "unlist", proved)
    await server.player("bob")
    for words, ids in (
        (["--verdict", "refuted"], [refuted]),
        (["--held"], [proved]),
        (["--user", "ann"], [proved, refuted]),
        (["--user", "bob"], []),
    ):
        chosen = await administrate("replays", "list", *words, "--json")
        assert [record["id"] for record in chosen.records] == ids, words
    assert len((await administrate("replays", "list", "--limit", "1")).lines) == 2
    await administrate("replays", "list", "--top", "--held", fails=FatalError)


async def test_unproven_leaderboard_scores_are_listed(administrate, server):
    """The list covers the first hundred entries, each with the newest replay that claims the score, if any.

    A verified replay proves a score, also while its player hides it.
    """
    ids = {}
    for name, score in {"honest": 700, "hidden": 690, "liar": 650, "pusher": 600}.items():
        client = await server.player(name)
        await client.opt_in(name)
        me = await client.me()
        server.sql("UPDATE leaderboard SET best_score = %s WHERE user_id = %s", (score, me.id))
        if name != "pusher":
            ids[name] = verified(server.dsn, me.id, score, status="refuted" if name == "liar" else "verified")
    server.sql("UPDATE replays SET unlisted = true WHERE id = %s", (ids["hidden"],))
    listed = await administrate("replays", "list", "--top", "--json")
    found = {record["username"]: (record["replay_id"], record["verdict"]) for record in listed.records}
    assert found == {"liar": (ids["liar"], "refuted"), "pusher": (None, None)}


async def test_copied_game_of_another_player_is_shown(administrate, server):
    """A copy has equal moves on the same deal. Another upload by the same player isn't one, nor is another game."""
    ids = []
    for name in ("ann", "thief", "other"):
        client = await server.player(name)
        await client.opt_in(name)
        ids.append(await client.upload_replay(replay(seed=77)))
        check(server.dsn, ids[-1], 700)
        digest = b"another" if name == "other" else b"the same"
        server.sql("UPDATE verdicts SET timeline_digest = %s WHERE replay_id = %s", (digest, ids[-1]))
    shown = json.loads(await administrate("replays", "show", ids[1], "--json"))
    assert [(each["replay_id"], each["username"]) for each in shown["same_game"]] == [(ids[0], "ann")]
    assert json.loads(await administrate("replays", "show", ids[2], "--json"))["same_game"] == []


@pytest.fixture
def named(server):
    """Insert players with these names, each with an entry under a display name."""

    def named(**names):
        for username, display_name in names.items():
            server.sql(
                "WITH made AS (INSERT INTO users VALUES (gen_random_uuid(), %s, 'x', now()) RETURNING id) INSERT INTO"
                " leaderboard (user_id, display_name, recorded_at, visible) SELECT id, %s, now(), true FROM made",
                (username, display_name),
            )

    return named


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ann"], ["Ann", "anna_1", "ANNE"]),
        (["anna_"], ["anna_1"]),
        (["anna%"], []),
        (["ANNE"], ["ANNE"]),
        (["nn", "--part"], ["Ann", "anna_1", "ANNE", "joanne"]),
        (["_", "--part"], ["anna_1"]),
        (["queen", "--display-name"], ["ANNE", "joanne"]),
        (["of hearts", "--display-name"], ["ANNE"]),
    ],
)
async def test_players_are_found_in_any_case(administrate, named, monkeypatch, words, expected):
    """The search takes the beginning or a part of the username, or a part of the display name."""
    monkeypatch.setattr(players, "PAGE", 2)
    named(Ann="A", anna_1="B", ANNE="The Queen of Hearts", joanne="queen", bob="C")
    done = await administrate("users", "find", *words, "--json")
    found = [record["username"] for record in done.records]
    assert (found if len(words) == 1 else sorted(found, key=str.lower)) == expected


async def test_player_found_by_id_shows_suspension_and_lock(administrate, server):
    me = await (await server.player("ann")).me()
    await administrate("users", "suspend", "ann")
    record = (await administrate("users", "find", me.id, "--json")).json
    assert record["username"] == "ann"
    assert record["suspended_since"] is not None
    assert record["locked_since"] is None
    assert (await administrate("users", "find", "nobody")).lines[1:] == []
    await administrate("users", "find", " ", fails=FatalError)


async def test_truncated_list_is_marked(administrate, named, monkeypatch):
    """A list is cut when there are too many players, or when the time for the search is over."""
    monkeypatch.setattr(find_command, "MOST", 2)
    named(ann1="a", ann2="b", ann3="c")
    done = await administrate("users", "find", "ann")
    assert (len(done.lines), done.progress) == (3, ["there are more: only the first 2 are shown"])
    assert (await administrate("users", "find", "ann1")).progress == []
    monkeypatch.setattr(find_command, "PART_SECONDS", 0.0)
    done = await administrate("users", "find", "zzz", "--part")
    assert done.progress == ["stopped after 0 s: there may be more"]


async def test_new_names_and_avatars_are_listed_newest_first(administrate, server):
    """Each player is listed once, with the current name and avatar. Removed ones are left out."""
    for name in ("ann", "bob", "eve"):
        client = await server.player(name)
        await client.opt_in(f"{name} at first")
        await client.upload_avatar(PIXEL, "image/png")
        server.sql(
            "INSERT INTO account_history (happened_at, user_id, event, times)"
            " SELECT now(), id, event, 1 FROM users, unnest(ARRAY['opted in', 'avatar changed']) AS event"
            " WHERE username = %s",
            (name,),
        )
        if name == "eve":
            await client.delete_avatar()
            await client.opt_in("Eve")
    named = await administrate("leaderboard", "list", "--json")
    shown = [(record["username"], record["display_name"]) for record in named.records]
    assert shown == [("eve", "Eve"), ("bob", "bob at first"), ("ann", "ann at first")]
    avatars = await administrate("avatars", "list", "--json")
    assert [record["username"] for record in avatars.records] == ["bob", "ann"]
    assert avatars.records[0]["avatar"].endswith(".png")
    assert len((await administrate("avatars", "list", "--json", "--limit", "1")).records) == 1
