"""What the console shows: docs/console.md "The interface"."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import quote
from uuid import uuid4

import msgspec
import pytest_twisted
from msgspec.structs import asdict

from solisync.commands.smoke import PIXEL
from solisync.housekeeping import NAMES
from solisync.klondike import prove
from solisync.rules.games import SentGame
from tests.checking.uploads import encoded, game, upload
from tests.harness import games as finished
from tests.harness.boards import NOON, verified
from tests.harness.console import Console
from tests.harness.payloads import IMAGES, replay
from tests.harness.service import start

NOBODY = str(uuid4())


@pytest_twisted.async_fixture
async def ann(console, server):
    """A player with a row of each kind, and an admin who has signed in: client and id."""
    await console.sign_in("root")
    client = await server.player("ann")
    await client.opt_in("Queen of hearts")
    await client.upload_avatar(PIXEL, "image/png")
    return client, (await client.me()).id


async def test_player_is_found_by_each_kind_of_search(console, server, ann):
    """The kinds are the beginning or a part of the username, id, display name, address and state."""
    _, user_id = ann
    happened = "INSERT INTO account_history (happened_at, user_id, event, client, times) VALUES (now(), %s, %s, %s, 1)"
    server.sql(happened, (user_id, "login", "203.0.113.7"))
    await console.ask("PUT", f"/players/{user_id}/lock", {"reason": "name", "locked": True})
    for query in ("q=AN", "q=nn&where=part", f"q={user_id}", "q=hearts&where=display_name", "state=locked"):
        found = await console.get(f"/players?{query}")
        assert [player["username"] for player in found["players"]] == ["ann"], query
        assert found["next"] is None
    (visitor,) = (await console.get("/players?q=203.0.113.7&where=address"))["visitors"]
    assert (visitor["username"], visitor["events"]) == ("ann", 1)
    for query in ("q=zz", "state=suspended", f"q={NOBODY}"):
        assert (await console.get(f"/players?{query}"))["players"] == []
    for query in ("where=nowhere", "state=fun", "q=a&q=b", "q=x&where=address", f"q={'x' * 101}"):
        assert (await console.ask("GET", f"/players?{query}")).status == 400, query


async def test_search_finds_non_ascii_names(console, ann):
    """The query is UTF-8."""
    client, user_id = ann
    for name, part in (("Jürgen Groß", "jürgen"), ("Иван Грозный", "Иван"), ("將棋の王", "の王")):
        await client.opt_in(name)
        found = await console.get(f"/players?where=display_name&q={quote(part)}")
        assert [player["id"] for player in found["players"]] == [user_id], name
        assert (await console.get(f"/players?q={quote(part)}"))["players"] == []


async def test_player_route_equals_the_command(console, administrate, ann):
    """Facts, sessions and history are the same."""
    _, user_id = ann
    await console.ask("PUT", f"/players/{user_id}/lock", {"reason": "name", "locked": True})
    assert await console.get(f"/players/{user_id}") == (await administrate("users", "show", "ann", "--json")).json
    sessions = (await administrate("sessions", "list", "ann", "--json")).records
    shown = (await console.get(f"/players/{user_id}/sessions"))["sessions"]
    assert [{name: each[name] for name in sessions[0]} for each in shown] == sessions
    history = (await administrate("users", "history", "ann", "--json")).records
    assert (await console.get(f"/players/{user_id}/history"))["history"] == history
    assert history[0]["what"] == "lock"
    assert history[0]["by"] == "admin:root"
    avatar = await console.ask("GET", f"/players/{user_id}/avatar")
    assert (avatar.content, avatar.headers["content-type"]) == (PIXEL, "image/png")
    export = await console.ask("GET", f"/players/{user_id}/export")
    assert export.json["account"]["username"] == "ann"


async def test_links_for_players_are_whole_with_the_address_of_the_site(reactor, console, server, administrate, ann):
    """Reset links and public pages begin with SOLISYNC_SITE_URL, or are paths without it. A guest has no page."""
    client, user_id = ann
    replay_id = await client.upload_replay(replay())
    guest = server.client()
    await guest.guest()
    site = {"SOLISYNC_SITE_URL": "https://play.example.org"}
    running = await start(reactor, server.dsn, settings={"SOLISYNC_ADMIN_LISTEN": "tcp:0:interface=127.0.0.1", **site})
    try:
        whole = Console(running.service.admin_address.port, administrate)
        whole.cookie = console.cookie
        for each, environ, address in ((console, {}, ""), (whole, site, site["SOLISYNC_SITE_URL"])):
            for kind, name, found in (("users", "ann", f"players/{user_id}"), ("replays", replay_id, None)):
                shown = await each.get(f"/{found or f'replays/{replay_id}'}")
                path = f"/players/{name}" if found else f"/replays/{name}"
                assert shown["page"] == f"{address}{path}"
                assert (await administrate(kind, "show", name, "--json", **environ)).json["page"] == shown["page"]
            link = (await each.ask("POST", f"/players/{user_id}/password-link", {"reason": "request"})).json
            assert link["url"] == (f"{address}{link['path']}" if address else None)
            assert (await administrate("users", "link", "ann", **environ)).startswith(f"{address}/reset#")
        assert (await console.get(f"/players/{(await guest.me()).id}"))["page"] is None
    finally:
        await running.service.stopService()


async def test_best_score_has_the_verdict_of_its_replay(console, server, ann):
    """A refuted upload is marked, and a verified one of the same score counts more."""
    _, user_id = ann
    server.sql("UPDATE leaderboard SET best_score = 650")
    for day, (status, claimed) in enumerate(((None, 600), ("refuted", 650), ("verified", 650))):
        received = NOON + timedelta(days=day)
        replay_id = verified(server.dsn, user_id, claimed, status=status or "refuted", received_at=received)
        shown = await console.get(f"/players/{user_id}")
        assert shown["best_verdict"] == status
        assert shown["best_replay_id"] == (replay_id if status else None)


async def test_replay_route_equals_the_command(console, server, administrate, ann):
    """The body is returned to the byte, and a timeline once the replay is verified."""
    client, user_id = ann
    body = replay(seed=77)
    replay_id = await client.upload_replay(body)
    listed = (await administrate("replays", "list", "--json")).records
    assert (await console.get("/replays"))["replays"] == listed
    assert (await console.get(f"/players/{user_id}/replays?verdict=pending"))["replays"] == listed
    assert (await console.get("/replays?held=true"))["replays"] == []
    shown = await console.get(f"/replays/{replay_id}")
    facts = (await administrate("replays", "show", replay_id, "--json")).lines[0]
    assert shown.pop("user_id") == user_id
    assert shown == json.loads(facts)
    assert (await console.ask("GET", f"/replays/{replay_id}/body")).content == body
    assert (await console.ask("GET", f"/replays/{replay_id}/timeline")).status == 409


async def test_refuted_replay_shows_what_its_moves_prove(console, server, administrate, ann):
    """The detail, the lists and the commands have it, also before this version has checked the replay."""
    client, user_id = ann
    cut = game()["moves"][:30] + game()["moves"][31:]
    ids = [await upload(server, client, replay) for replay in (game(final_score=1110), game(moves=cut))]
    higher, illegal = proved = [prove(encoded(replay)) for replay in (game(final_score=1110), game(moves=cut))]
    store = "INSERT INTO verdicts (replay_id, status, checked_at, engine, proved) VALUES (%s, 'refuted', now(), 3, %s)"
    server.sql(store, (ids[0], msgspec.json.encode(higher).decode()))
    server.sql(store, (ids[1], None))
    findings = [
        f"claims 1,110; its moves prove {higher.score}",
        f"move {illegal.index + 1} is illegal: {illegal.input}; the moves before it prove {illegal.score}",
    ]
    for replay_id, proof, finding in zip(ids, proved, findings, strict=True):
        shown = await console.get(f"/replays/{replay_id}")
        assert (shown["proved"], shown["finding"]) == (asdict(proof), finding)
        told = (await administrate("replays", "show", replay_id, "--json")).json
        assert (told["proved"], told["finding"]) == (shown["proved"], finding)
        assert finding in await administrate("replays", "show", replay_id)
        steps = (await console.get(f"/replays/{replay_id}/timeline"))["steps"]
        assert (len(steps), steps[-1]["score"]) == (proof.moves, proof.score)
        assert (await server.ask("GET", f"/api/replays/{replay_id}/timeline")).status == 409
    listed = (await console.get("/replays"))["replays"]
    assert [(each["finding"], each["proved"]) for each in listed] == [(None, None), (findings[0], asdict(higher))]
    server.sql("UPDATE leaderboard SET best_score = 1110")
    (entry,) = (await console.get("/review?kind=entries"))["entries"]
    assert (entry["user_id"], entry["finding"]) == (user_id, findings[0])


async def test_review_shows_new_content(console, server, ann):
    """The lists have changed names and avatars, new players with their address, unproven entries, and replays."""
    _, user_id = ann
    happened = "INSERT INTO account_history (happened_at, user_id, event, client, times) VALUES (now(), %s, %s, %s, 1)"
    for event in ("register", "opted in", "avatar changed"):
        server.sql(happened, (user_id, event, "203.0.113.7"))
    server.sql("UPDATE leaderboard SET best_score = 650")
    replay_id = verified(server.dsn, user_id, 650, status="refuted")
    (named,) = (await console.get("/review"))["profiles"]
    assert (named["username"], named["display_name"]) == ("ann", "Queen of hearts")
    assert (await console.get("/review?kind=avatars"))["profiles"][0]["avatar"] == "png"
    assert (await console.get("/review?kind=players"))["players"][0]["client"] == "203.0.113.7"
    assert (await console.get("/review?kind=entries"))["entries"][0]["replay_id"] == replay_id
    assert (await console.get("/review?kind=replays"))["replays"][0]["id"] == replay_id


async def test_review_survives_numbers_that_postgresql_cannot_read(console, server, administrate, ann):
    """Version 1.0.0 stored exponents of any size."""
    client, _ = ann
    claim = await client.upload_replay(replay(final_score=650.25))
    for spelling in ("1e-20000", "0e99999999999", "-1e-999", "0.5E-1000", "0e-0000000000"):
        newer = await client.upload_replay(replay())
        server.sql("UPDATE replays SET final_score = %s, time_seconds = %s WHERE id = %s", (spelling, spelling, newer))
    server.sql("UPDATE leaderboard SET best_score = 650")
    (entry,) = (await console.get("/review?kind=entries"))["entries"]
    assert entry["replay_id"] == claim
    assert (await administrate("replays", "list", "--top", "--json")).records == [entry]
    assert len((await console.get("/replays"))["replays"]) == 6


async def test_service_page_shows_queues_rows_and_admins(console, server, ann):
    shown = await console.get("/service")
    assert shown["rows"]["users"] == 1
    assert shown["queues"]["literal"] == 0
    assert shown["up_seconds"] >= 0
    assert shown["retention_behind_seconds"] == 0
    assert [run["job"] for run in shown["jobs"]] == NAMES
    assert [admin["name"] for admin in (await console.get("/admins"))["admins"]] == ["root"]


async def test_numbers_route_equals_the_command(console, server, administrate, ann):
    """Days come oldest first, with today, and null for what was not counted."""
    today = datetime.now(UTC).date()
    server.sql("INSERT INTO daily_numbers VALUES (%s, 'replays', 7, now())", (today - timedelta(days=1),))
    shown = (await console.get("/numbers?days=3"))["days"]
    assert shown == (await administrate("status", "--days", 3, "--json")).records
    assert [day["day"] for day in shown] == [str(today - timedelta(days=ago)) for ago in (2, 1, 0)]
    assert [day["replays"] for day in shown] == [None, 7, None]
    assert len((await console.get("/numbers"))["days"]) == 30
    assert len((await console.get("/numbers?days=400"))["days"]) == 400
    for query in ("days=0", "days=401", "days=-1", "days=x", "days=", "days=1&days=1"):
        assert (await console.ask("GET", f"/numbers?{query}")).status == 400, query


async def test_acts_are_read_page_by_page(console, server, ann):
    """The newest come first; act and admin narrow the list."""
    _, user_id = ann
    server.sql(
        "INSERT INTO admin_acts (actor_kind, actor, act, target) SELECT 'shell', 'bob', 'lock', 'player'"
        " FROM generate_series(1, 60)"
    )
    await console.ask("PUT", f"/players/{user_id}/lock", {"reason": "name", "locked": True})
    first = await console.get("/acts")
    rest = await console.get(f"/acts?before={first['next']}")
    assert (len(first["acts"]), len(rest["acts"]), rest["next"]) == (50, 11, None)
    assert first["acts"][0]["username"] == "ann"
    assert len((await console.get("/acts?actor=admin:root&act=lock"))["acts"]) == 1
    for query in ("act=fun", "before=-1", "before=x", "player=x"):
        assert (await console.ask("GET", f"/acts?{query}")).status == 400


async def test_replays_of_a_suspended_player_are_not_listed(console, server, administrate):
    """Operators see the same `listed` as players do, and the avatar in addition."""
    await console.sign_in()
    ann = await server.player("ann")
    me = await ann.upload_avatar(IMAGES["png"], "image/png")
    await ann.upload_replay(replay())
    assert [each["listed"] for each in (await console.get("/replays"))["replays"]] == [True]
    await administrate("users", "suspend", "ann")
    for path in ("/replays", f"/players/{me.id}/replays"):
        assert [each["listed"] for each in (await console.get(path))["replays"]] == [False]
    assert (await console.ask("GET", f"/players/{me.id}/avatar")).status == 200


async def test_games_of_a_player_are_listed_last_counted_first(console, ann):
    """A page of two games, and the rest."""
    client, user_id = ann
    sent = [msgspec.convert(finished.game(score=number, seconds=400, undone=True), SentGame) for number in range(3)]
    for each in sent:
        await client.count_games(each)
    page = await console.get(f"/players/{user_id}/games?limit=2")
    rest = await console.get(f"/players/{user_id}/games?before={quote(page['next'])}")
    assert [each["score"] for each in (*page["games"], *rest["games"])] == [2, 1, 0]
    assert (page["games"][0]["game_id"], page["games"][0]["xp"], rest["next"]) == (sent[2].game_id, 50, None)


async def test_unknown_player_or_replay_returns_404(console, ann):
    """The spelling of the id doesn't matter."""
    for other in (NOBODY, "nonsense"):
        for path in ("", "/sessions", "/avatar", "/history", "/games", "/export"):
            assert (await console.ask("GET", f"/players/{other}{path}")).status == 404, path
        for path in ("", "/body", "/timeline"):
            assert (await console.ask("GET", f"/replays/{other}{path}")).status == 404, path


async def test_findings_are_those_of_the_doctor(console, administrate, server, ann):
    """Settings and database are checked in the same words, and the findings are cached.

    The console doesn't check ports.
    """
    shown = await console.get("/service/findings")
    assert [each["subject"] for each in shown["findings"][:3]] == ["secret", "proxy", "streams"]
    by_subject = {each["subject"]: each for each in shown["findings"]}
    assert by_subject["console"]["text"] == "only this machine reaches it"
    assert "port" not in by_subject
    streams = {"SOLISYNC_STREAMS": "1"}
    records = (await administrate("doctor", "--json", fails=None, **streams)).records
    for subject in ("database", "schema", "rights", "bus"):
        assert by_subject[subject] in records
    server.sql("ALTER TABLE avatars RENAME TO other")
    server.sql("ALTER TABLE other RENAME TO avatars")
    assert await console.get("/service/findings") == shown


async def test_settings_are_shown_without_secrets(console, server, ann):
    """A secret shows only whether it is set, a DSN only its server."""
    settings = {each["variable"]: each for each in (await console.get("/service/settings"))["settings"]}
    assert settings["JWT_SECRET"] == {"variable": "JWT_SECRET", "set": True, "value": None}
    assert settings["JWT_SECRET_PREVIOUS"]["set"] is False
    assert settings["SOLISYNC_CORS_ORIGINS"] == {"variable": "SOLISYNC_CORS_ORIGINS", "set": False, "value": None}
    assert settings["SOLISYNC_PAGES"]["value"] == "on"
    assert "dbname=" in settings["DATABASE_URL"]["value"]
    assert "user=" not in settings["DATABASE_URL"]["value"]


async def test_migrations_are_shown_newest_first(console, server, ann):
    shown = (await console.get("/service/migrations"))["migrations"]
    rows = server.sql("SELECT number, checksum FROM schema_migrations ORDER BY number DESC")
    assert [(each["number"], each["checksum"]) for each in shown] == rows


async def test_export_is_recorded_as_an_act(console, server, ann):
    """The record shows which admin has taken a player's data. A HEAD request isn't recorded."""
    _, user_id = ann
    await console.ask("HEAD", f"/players/{user_id}/export")
    assert (await console.get("/acts"))["acts"] == []
    await console.ask("GET", f"/players/{user_id}/export")
    (act,) = (await console.get("/acts?act=export"))["acts"]
    assert (act["actor"], act["username"]) == ("admin:root", "ann")
