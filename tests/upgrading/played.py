"""Data that players and operators leave in the database of a release, and the requests that read it later."""

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import uuid4

from msgspec import convert
from twisted.internet.task import deferLater

from solisync.commands.smoke import PIXEL
from solisync.rules.analytics import AnalyticsEvent, Batch
from solisync.rules.games import SentGame
from solisync.web.json_schemas import EXAMPLE
from solisync.web.shared_cache import SECONDS
from tests.harness import original_server as there
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD
from tests.harness.games import game as finished
from tests.harness.payloads import progress_of
from tests.harness.service import refused
from tests.harness.tokens import access_token, token_pair
from tests.klondike.vectors import wins

ADMIN = "root"
ANN, BEN, CEM, DEE, EVE = PLAYERS = ("ann", "ben", "cem", "dee", "eve")
NEW = "canary password of later"
MESSAGE = "until you have written to us"
DAY = "2026-11-20"
WHY = {"reason": "cheating", "note": "seen by hand"}
NOW = {"exported_at", "server_time"}  # fields that are of the moment of the answer
COUNTED = finished(game_id="0b8b5a8e-3b1c-4a53-9f0e-6d1c8d6c6c7a")
GUEST_KEY = "the-key-of-a-guest-of-later"
FAR = "2126-01-01"  # the expiry of everything in a database that is kept for tests


def game(number=None, **changes):
    """Return a replay: the example, or a win of the game's own engine in which moves were undone."""
    replay = EXAMPLE if number is None else wins("2026-05-19", undo=True)[number]["replay"]
    return json.dumps({**replay, **changes}).encode()


async def unchecked(reactor, server):
    """Wait until no replay waits for its check."""
    await until(reactor, lambda: server.sql("SELECT count(*) FROM replay_checks") == [(0,)])


async def play(reactor, server, administrate, place):
    """Register players who play while replays are checked; import one from an original server.

    A guest gives its games to a player, another one has a key, an account is deleted, and a backup is made.
    """
    ann, *others = [await server.player(name) for name in (ANN, BEN, CEM, DEE)]
    guest = server.client()
    await guest.guest()
    await ann.join(guest.tokens.refresh_token)
    keyed = server.client()
    await keyed.guest(GUEST_KEY)
    await keyed.count_games(convert(finished(), SentGame))
    await (await server.player("fay")).delete_account()
    await administrate("backup", place / "played.dump")
    await ann.upload_avatar(PIXEL, "image/png")
    for client in (ann, *others):
        unlocked = {"id": "first_win", "unlocked": True, "unlock_date": f"{DAY}T10:00:00Z", "reward_granted": True}
        changes = {"stats__games_won": 3, "stats__games_played": 5, "stats__best_single_score": 700}
        token = client.tokens.access_token
        for device in (progress_of(**changes, achievements=[unlocked]), progress_of(zz_newer={"kept": [1, None]})):
            answer = await server.ask("POST", "/api/sync/push", body=device, bearer=token)
            assert answer.status == 200, answer
        await client.opt_in((await client.me()).username.title())
    await ann.count_games(convert(COUNTED, SentGame))
    for body in (game(game_id=str(uuid4())), game(0), game(final_score=EXAMPLE["final_score"] + 1)):
        await ann.upload_replay(body)
    await ann.set_listed(await ann.upload_replay(game(1)), False)
    await others[0].upload_replay(game(time_seconds=99))
    await unchecked(reactor, server)
    event = AnalyticsEvent(id=str(uuid4()), event_type="game_won", client_time=datetime.now(UTC))
    await ann.report(Batch(session_id="s", user_id=ANN, events=[event]))
    eve = there.user(username=EVE, password_hash=there.LONG_HASH)
    rows = {"users": [eve], "sync_state": [there.progress(there.payload(stats__games_won=7))]}
    rows |= {"leaderboard": [there.entry()], "replays": [there.replay()], "refresh_tokens": [there.token()]}
    file = there.write(there.create(place / "original.db"), **rows, analytics_events=[there.event()])
    await administrate("import-original", file)


async def look_after(server, console):
    """Carry out all kinds of acts as an admin, and of emergency steps as players; return the secrets that they got."""
    ann, cem, dee = [server.client() for _ in range(3)]
    ids = ids_of(server)
    await cem.login(CEM, PASSWORD)
    await ann.login(ANN, PASSWORD)
    spent, *codes = (await ann.make_recovery_codes(PASSWORD)).codes
    await ann.recover(ANN, spent, PASSWORD)
    await dee.login(DEE, PASSWORD)
    steps = [
        ("PUT", f"/players/{ids[BEN]}/suspension", {"suspended": True, "message": MESSAGE}),
        ("PUT", f"/players/{ids[CEM]}/entry", {"display_name": "A player"}),
        ("PUT", f"/players/{ids[CEM]}/lock", {"locked": True}),
        ("POST", f"/players/{ids[DEE]}/sessions/end", {"access": True}),
        ("POST", f"/players/{ids[DEE]}/password-link", {}),
    ]
    answers = [await console.ask(method, path, WHY | body) for method, path, body in steps]
    assert {answer.status for answer in answers} == {200}, answers
    await cem.upload_replay(game(2))  # held, and yet to be checked
    ((event,),) = server.sql("SELECT max(id) FROM account_history WHERE event = 'avatar changed'")
    answer = await console.ask("PUT", "/review/seen", {"kind": "avatars", "items": [event]})
    assert answer.status == 200, answer
    await ann.browser_login(ANN, PASSWORD)
    return {"codes": codes, "link": answers[-1].json, "guest_key": GUEST_KEY, "counted": COUNTED}


def keep(server):
    """Extend all expiries that a test of a later version needs."""
    server.sql(f"UPDATE refresh_tokens SET expires_at = '{FAR}'")
    server.sql(f"UPDATE reset_tokens SET expires_at = '{FAR}'")


def ids_of(server):
    """Return the id of each player."""
    return dict(server.sql("SELECT username, id::text FROM users"))


async def answers(server, console):
    """Return the service's answers about everything in its database: JSON by path, of other documents the digest."""
    ids = ids_of(server)
    replays = [row[0] for row in server.sql("SELECT id::text FROM replays ORDER BY received_at")]
    seeds = f"{EXAMPLE['seed']}/{EXAMPLE['draw_mode']}"
    public = ["leaderboard", "replays/recent?limit=100", "replays/recent?verdict=verified", "boards/verified"]
    public += [f"boards/deals/{seeds}", *(f"players/{name}/replays" for name in PLAYERS)]
    public += [f"replays/{replay_id}{part}" for replay_id in replays for part in ("", "/verdict", "/timeline")]
    own = ["sync/pull", "me", "me/export", "me/replays", "me/recovery-codes", "sessions", "leaderboard/opt-in"]
    after_cutoffs = datetime.now(UTC) + timedelta(days=1)
    tokens = {name: access_token(player, after_cutoffs) for name, player in ids.items()}
    asked = [(f"/avatars/{ids[ANN]}.png", ANN), *((f"/api/{path}", ANN) for path in public)]
    asked += [(f"/api/{path}", name) for name in ids for path in own]
    found = {f"{name} {path}": await server.ask("GET", path, bearer=tokens[name]) for path, name in asked}
    shown = ["players", "replays", "acts"]
    for player in ids.values():
        shown += [f"players/{player}{part}" for part in ("", "/sessions", "/replays", "/history")]
    for replay_id in replays:
        shown += [f"replays/{replay_id}{part}" for part in ("", "/body", "/timeline")]
    found |= {f"{ADMIN} /{path}": await console.ask("GET", f"/{path}") for path in shown}
    return {path: _as_json(answer) for path, answer in found.items()}


async def go_on(reactor, server, console, secrets):
    """Let all players continue: stored values count, refused requests stay refused, ended sessions stay ended."""
    ids = ids_of(server)
    ann, ben, cem, dee, eve = [server.client() for _ in PLAYERS]
    ((session,), *_) = server.sql("SELECT jti::text FROM refresh_tokens WHERE user_id = %s", (ids[ANN],))
    ann.tokens = token_pair(ids[ANN], session, datetime.now(UTC))
    spent = await ann.refresh()
    await ann.refresh()
    ann.tokens, fresh = spent, ann.tokens
    assert (await refused(ann.refresh()))[0] == 401
    ann.tokens = fresh
    progress = progress_of(stats__games_won=9)
    pushed = await server.ask("POST", "/api/sync/push", body=progress, bearer=fresh.access_token)
    stats = pushed.json["merged"]["stats"]
    assert (stats["games_won"], stats["best_single_score"]) == (9, 700)
    if "counted" in secrets:  # since 1.2.0
        (known,) = (await ann.count_games(convert(secrets["counted"], SentGame))).games
        assert not known.counted
        guest = server.client()
        await guest.guest(secrets["guest_key"], create=False)
        await guest.delete_account()
    first = (await ann.own_replays()).replays[-1].id
    assert await ann.upload_replay(await ann.replay(first)) == first  # of one game
    await ann.recover(ANN, secrets["codes"][0], NEW)
    await ann.login(ANN, NEW)
    await dee.reset(secrets["link"]["path"].partition("#")[2], NEW)
    await eve.login(EVE, there.LONG_PASSWORD)
    status, text = await refused(ben.login(BEN, PASSWORD))
    assert (status, MESSAGE in text) == (403, True)
    answer = await console.ask("PUT", f"/players/{ids[BEN]}/suspension", WHY | {"suspended": False})
    assert answer.json["changed"] is True
    await deferLater(reactor, SECONDS)  # by then every process knows
    await ben.login(BEN, PASSWORD)
    await cem.login(CEM, PASSWORD)
    assert (await refused(cem.opt_in("Cem")))[0] == 403
    for client in (ann, ben, cem, dee, eve):
        await client.delete_account()
    assert ids_of(server) == {}


def _as_json(answer):
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    return {
        "status": answer.status,
        "answer": answer.json if is_json else sha256(answer.content).hexdigest(),
    }
