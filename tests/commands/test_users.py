"""`solisync users`: its lists and facts, and changes that affect only the named player."""

import json
import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred, gatherResults

from solisync.commands import users
from solisync.commands.smoke import PIXEL
from solisync.commands.table import COMMANDS
from solisync.errors import Conflict, FatalError, NotFound
from solisync.postgres.opening import open_connection
from solisync.postgres.transaction import Statements
from solisync.rules.analytics import AnalyticsEvent, Batch
from solisync.storage.paging import FIRST_TIME, PAGE
from solisync.storage.players import players
from tests.harness.constants import PASSWORD
from tests.harness.footprint import play
from tests.harness.payloads import progress_of
from tests.harness.service import refused

REPLAY = (
    '{"mode": "Classic", "draw_mode": "DrawOne", "final_score": 1.0e2, "time_seconds": 9,\n'
    ' "recorded_at": "2026-01-01", "note": "\u009b\u202e", "big": 1e400, "half": "\\ud800"}'
).encode()


def names(done):
    return [record["username"] for record in done.records]


async def report(client, name, event_type="game_end"):
    """Report one event about this player, as a game does."""
    event = AnalyticsEvent(id=str(uuid4()), event_type=event_type, client_time=datetime.now(UTC))
    receipt = await client.report(Batch(session_id="s1", user_id=name, events=[event]))
    assert receipt.accepted == 1


def named(server):
    """Return the names that events still have, and the number of events without a name."""
    rows = server.sql("SELECT name FROM analytics_events LEFT JOIN analytics_names n ON n.id = name_id ORDER BY name")
    return [name for (name,) in rows]


@pytest.fixture
def fill(server):
    """Insert players with these names."""

    def fill(*usernames):
        for name in usernames:
            server.sql("INSERT INTO users VALUES (gen_random_uuid(), %s, 'canary-hash', now())", (name,))

    return fill


async def test_since_lists_recently_registered_players(administrate, fill, server):
    """--since works with the other options."""
    fill("ann", "anton", "bob")
    server.sql("UPDATE users SET created_at = '2026-11-20T12:00:00Z' WHERE username <> 'ann'")
    server.sql("UPDATE users SET created_at = '2026-11-20T11:59:59.999999Z' WHERE username = 'ann'")
    since = ["--since", "2026-11-20T12:00:00Z"]
    assert names(await administrate("users", "list", "--json", *since)) == ["anton", "bob"]
    assert names(await administrate("users", "list", "--json", *since, "--name", "an")) == ["anton"]
    assert names(await administrate("users", "list", "--json", *since, "--limit", "1")) == ["anton"]


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
async def test_list_is_complete_at_any_page_size(reactor, server, fill, page):
    """Each player is listed once, by name."""
    everybody = ["Zoe", "ann", "ann_", "annA", "bob", "z" * 32]
    fill(*everybody)
    with closing(await open_connection(reactor, server.dsn)) as connection:
        for prefix in ("", "ann"):
            pages = players.by_name(Statements(connection), prefix=prefix, since=FIRST_TIME, size=page)
            listed = [each.username async for found in pages for each in found]
            assert listed == sorted(name for name in everybody if name.startswith(prefix))


async def test_limit_may_be_larger_than_a_page(administrate, server):
    server.sql(
        "INSERT INTO users SELECT gen_random_uuid(), 'player' || n, 'canary-hash', now() FROM generate_series(1, %s) n",
        (PAGE + 2,),
    )
    for limit in (PAGE - 1, PAGE, PAGE + 1):
        assert len(names(await administrate("users", "list", "--json", "--limit", limit))) == limit


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--name", "ann"], ["ann", "annA", "ann_", "annz"]),
        (["--name", "ann_"], ["ann_"]),
        (["--name", "Ann"], []),
        (["--limit", "2"], ["Zoe", "ann"]),
        (["--limit", "0"], []),
        (["--limit", "6"], ["Zoe", "ann", "annA", "ann_", "annz", "bob"]),
        (["--name", "ann", "--limit", "3"], ["ann", "annA", "ann_"]),
    ],
)
async def test_list_is_narrowed_by_name_and_limit(administrate, fill, words, expected):
    """--name takes the beginning of a name."""
    fill("Zoe", "ann", "ann_", "annA", "annz", "bob")
    assert names(await administrate("users", "list", "--json", *words)) == expected


async def test_list_is_a_table_with_headings(administrate, fill):
    fill("ann", "x" * 32)
    lines = (await administrate("users", "list")).lines
    assert lines[0].split() == ["USERNAME", "ID", "CREATED", "AT", "USED", "AT", "REPLAYS", "BYTES", "AVATAR"]
    assert all(line.index("-", 60) and line.endswith("0 B  -") for line in lines[1:])
    assert len({len(line) for line in lines[1:]}) == 1


@pytest.fixture
def four(server):
    """ann, bob, cid and dan: registered in that order; bob was seen last, then ann; cid stores most, then bob."""

    async def register():
        for name in ("ann", "bob", "cid", "dan"):
            player = await server.player(name)
            if name in ("bob", "cid"):
                await player.upload_avatar(PIXEL, "image/png")
            if name == "cid":
                await player.upload_replay(REPLAY)
            if name == "dan":
                await player.logout()

    pytest_twisted.blockon(Deferred.fromCoroutine(register()))
    ago = "UPDATE refresh_tokens SET used_at = now() - %s FROM users WHERE users.id = user_id AND username = %s"
    for name, hours in (("bob", 1), ("ann", 2), ("cid", 3)):
        server.sql(ago, (timedelta(hours=hours), name))
    return server


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("name", ["ann", "bob", "cid", "dan"]),
        ("registered", ["dan", "cid", "bob", "ann"]),
        ("used", ["bob", "ann", "cid", "dan"]),
        ("bytes", ["cid", "bob", "ann", "dan"]),
    ],
)
async def test_list_is_ordered_by_name_age_use_or_size(administrate, four, order, expected):
    """Players without a session come last."""
    done = await administrate("users", "list", "--json", "--order", order)
    assert names(done) == expected
    listed = {record["username"]: record for record in done.records}
    assert [listed[name]["bytes"] for name in ("ann", "bob", "cid")] == [0, len(PIXEL), len(PIXEL) + 4096]
    assert listed["bob"]["used_at"] > listed["ann"]["used_at"]
    assert listed["dan"]["used_at"] is None
    narrowed = await administrate("users", "list", "--json", "--order", order, "--limit", "1", "--name", expected[2])
    assert names(narrowed) == expected[2:3]


async def test_order_without_an_index_has_a_bound(administrate, fill, monkeypatch):
    """A larger --limit is refused."""
    monkeypatch.setattr(users, "MOST_SORTED", 2)
    fill("ann", "bob", "cid")
    assert names(await administrate("users", "list", "--json", "--order", "bytes")) == ["ann", "bob"]
    with pytest.raises(FatalError, match="--order used lists at most 2 players"):
        await administrate("users", "list", "--order", "used", "--limit", "3")


async def test_player_is_found_by_name_and_by_id(administrate, server):
    """Names are trimmed as at login; an id has its hyphens, in any case."""
    ann = await server.player("ann")
    user_id = (await ann.me()).id
    for text in ("ann", " ann ", user_id, user_id.upper(), f"urn:uuid:{user_id}"):
        assert (await administrate("users", "show", text, "--json")).json["id"] == user_id
    for text in ("Ann", user_id.replace("-", ""), "", "no-body", "\udcff", str(uuid4())):
        with pytest.raises(NotFound):
            await administrate("users", "show", text)


async def test_hexadecimal_username_is_not_read_as_an_id(administrate, server, fill):
    """An id has hyphens."""
    fill("bob")
    ((bob,),) = server.sql("SELECT id::text FROM users")
    digits = bob.replace("-", "")
    fill(digits)
    assert (await administrate("users", "show", digits, "--json")).json["username"] == digits
    assert (await administrate("users", "show", bob, "--json")).json["username"] == "bob"


async def test_player_is_shown_in_numbers(administrate, server):
    """Numbers save the operator from reading the player's data."""
    ann = await server.player("ann")
    await ann.login("ann", PASSWORD)
    await ann.upload_avatar(PIXEL, "image/png")
    await ann.upload_replay(REPLAY)
    payload = (await ann.pull()).merged
    await ann.push(payload)
    await ann.opt_in("The \u0041nn")
    shown = (await administrate("users", "show", "ann", "--json")).json
    expected = {
        "sessions": 2,
        "avatar_bytes": len(PIXEL),
        "replays": 1,
        "replay_bytes": len(REPLAY),
        "games_played": 0,
        "on_leaderboard": True,
        "display_name": "The Ann",
    }
    assert {name: shown[name] for name in expected} == expected
    assert shown["avatar"].endswith(".png")
    assert "canary" not in str(shown)


async def test_control_characters_in_a_name_are_escaped(administrate, server):
    """Only a database that was altered by hand can hold such a name."""
    await (await server.player("ann")).opt_in("ann")
    server.sql("UPDATE leaderboard SET display_name = E'\\x1b[31mred\u009b\u202e'")
    server.sql("UPDATE users SET username = E'an\\x07n\nx'")
    (user_id,) = [str(row[0]) for row in server.sql("SELECT id FROM users")]
    for words in (["users", "show", user_id], ["users", "list"], ["leaderboard", "hide", user_id]):
        text = await administrate(*words)
        assert text.replace("\n", "").isprintable()
        assert "an\\x07n\\nx" in text


async def test_renamed_player_keeps_sessions_and_password(administrate, server):
    """The old name is free."""
    ann = await server.player("ann")
    assert "renamed 'ann' to 'Eve'" in await administrate("users", "rename", "ann", " Eve ")
    await ann.refresh()
    await server.client().login("Eve", PASSWORD)
    assert await refused(server.client().login("ann", PASSWORD)) == (401, "invalid credentials")
    await server.player("ann")


async def test_two_renames_to_one_name_have_one_winner(administrate, server):
    """The database decides; the other command reports that the name is taken."""
    for name in ("ann", "bob", "cat", "dan"):
        await server.player(name)
    outcomes = await gatherResults(
        [
            Deferred.fromCoroutine(administrate("users", "rename", name, "Eve")).addErrback(lambda f: f.value)
            for name in ("ann", "bob", "cat", "dan")
        ]
    )
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3
    assert "Eve" in names(await administrate("users", "list", "--json"))


async def test_events_follow_a_rename_and_lose_the_name_on_deletion(administrate, server):
    ann = await server.player("ann")
    digits = uuid4().hex
    await report(ann, "ann")
    await report(ann, (await ann.me()).id)
    await administrate("users", "rename", "ann", "Eve")
    assert named(server) == sorted(["Eve", (await ann.me()).id])
    await administrate("users", "rename", "Eve", digits)
    await report(ann, digits)
    assert len(set(named(server))) == 2
    await ann.delete_account()
    assert named(server) == [None, None, None]


async def test_username_equal_to_another_players_id_gets_none_of_its_events(administrate, server):
    """Exports and renames leave the other player's events alone. Events that move to the name get their owner's id."""
    victim, thief = await server.player("ann"), await server.player("Eve")
    player, owner = (await victim.me()).id, (await thief.me()).id
    await report(victim, player)
    await report(thief, "Eve")
    await administrate("users", "rename", "Eve", UUID(player).hex)
    assert named(server) == sorted([player, owner])
    exported = json.loads(await administrate("users", "export", UUID(player).hex))
    assert [event["name"] for event in exported["analytics"]] == [owner]
    exported = json.loads(await administrate("users", "export", "ann"))
    assert [event["name"] for event in exported["analytics"]] == [player]
    await administrate("users", "rename", UUID(player).hex, "Eve")
    assert named(server) == sorted([player, owner])


async def test_rename_makes_events_nameless_if_the_new_name_has_events(administrate, server):
    """Events under the new name belong to another player."""
    ann = await server.player("ann")
    await report(ann, "ann")
    await report(ann, "Eve")
    await administrate("users", "rename", "ann", "Eve")
    assert sorted(named(server), key=str) == ["Eve", None]
    await report(ann, "Eve")
    await administrate("users", "rename", "Eve", "Eve")
    assert sorted(named(server), key=str) == ["Eve", "Eve", None]


async def test_export_equals_the_document_that_the_player_gets(administrate, server):
    """Only the time of the export, and the act that records it, differ."""
    ann = server.client()
    user_id = await play(server.dsn, ann, "ann")
    document = (await ann.export()).decode()
    for user in ("ann", user_id):
        printed = await administrate("users", "export", user, "--reason", "request")
        assert json.loads(printed)["moderation"]["acts"][-1]["act"] == "export"
        unrecorded = re.sub(r'"acts":\[[^]]+\]', '"acts":[]', printed)
        assert unrecorded.partition(",")[2] == document.partition(",")[2]
        assert json.loads(printed)["exported_at"] > json.loads(document)["exported_at"]


@pytest.mark.parametrize("command", [each for each in COMMANDS if any(a.name == "user" for a in each.arguments)])
async def test_unknown_player_gives_the_same_error_everywhere(administrate, server, tmp_path, command):
    more = ["new_name"] if command.words in ("users rename", "leaderboard name") else []
    if command.words == "progress restore":
        more = ["--from", tmp_path / "export.json"]
        account = {"id": str(uuid4()), "username": "nobody"}
        export = {"exported_at": "2026-11-20T12:00:00Z", "account": account, "progress": progress_of()}
        more[1].write_text(json.dumps(export), "utf-8")
    with pytest.raises(NotFound, match=r"^user 'nobody' not found$"):
        await administrate(*command.words.split(), "nobody", *more)
