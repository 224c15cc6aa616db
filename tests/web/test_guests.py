"""Guests (docs/protocol.md "Guests"): accounts without a password, which become players or join one."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from solisync.access.tokens import Tokens
from solisync.errors import Interrupted
from solisync.postgres.transaction import Transaction
from solisync.rules.analytics import AnalyticsEvent, Batch
from tests.harness.concurrency import gather
from tests.harness.constants import PASSWORD, SECRET
from tests.harness.http_requests import new_address
from tests.harness.payloads import progress_of, replay
from tests.harness.postgres import truncate
from tests.harness.service import refused, start

NAME = {"username": "ann", "password": PASSWORD}
NOTE = """
    WITH act AS (
        INSERT INTO admin_acts (actor_kind, actor, act, target) VALUES ('shell', 'root', 'unlist', 'replay')
        RETURNING id
    )
    INSERT INTO admin_notes (act_id, user_id, replay_id, note)
    SELECT act.id, user_id, replays.id, 'seen by hand' FROM act, replays
"""


class Guest:
    """A guest, with its tokens."""

    def __init__(self, server, pair):
        self.server, self.access, self.refresh = server, pair["access_token"], pair["refresh_token"]
        self.id = pair.get("player", {}).get("id")

    async def ask(self, method, path, body=None, **more):
        return await self.server.ask(method, path, body=body, bearer=self.access, **more)

    async def me(self):
        return (await self.ask("GET", "/api/me")).json

    async def push(self, **changes):
        return await self.ask("POST", "/api/sync/push", progress_of(**changes))

    async def upload(self, body=None):
        return await self.ask("POST", "/api/replays", body or replay())

    async def claim(self, name=NAME):
        return await self.ask("POST", "/api/me/claim", name, address=new_address())


async def begin(server, **more):
    answer = await server.ask("POST", "/api/auth/guest", address=new_address(), **more)
    assert answer.status == 200, answer
    assert answer.headers["cache-control"] == "no-store"
    return Guest(server, answer.json)


async def join(server, client, token):
    return await server.ask(
        "POST", "/api/me/join", body={"guest_refresh_token": token}, bearer=client.tokens.access_token
    )


@pytest.mark.parametrize("body", [None, {}, {"more": 1}], ids=str)
async def test_guest_account_needs_no_form(server, body):
    """The reply is a pair of tokens, and the profile has `guest: true`."""
    guest = await begin(server, body=body)
    me = await guest.me()
    assert me["guest"] is True
    assert me["username"].startswith("guest_")
    assert set(me["username"][6:]) <= set("abcdefghijklmnopqrstuvwxyz234567")
    assert (len(me["username"]), me["avatar_url"]) == (18, None)


async def test_profile_of_a_player_has_no_field_for_guests(server):
    """Clients of 1.0.0 get the same fields as before."""
    client = await server.player("ann")
    answer = await server.ask("GET", "/api/me", bearer=client.tokens.access_token)
    assert list(answer.json) == ["id", "username", "avatar_url"]


async def test_guest_plays_like_a_player(server):
    """A guest pushes, pulls, uploads, refreshes, lists its sessions, exports and deletes its account."""
    guest = await begin(server)
    assert (await guest.push(stats__games_won=1, stats__games_played=1)).status == 200
    assert (await guest.upload()).status == 200
    for path in ("/api/sync/pull", "/api/sessions", "/api/me/replays", "/api/me/export", "/api/leaderboard/opt-in"):
        assert (await guest.ask("GET", path)).status == 200, path
    body = {"refresh_token": guest.refresh}
    assert (await server.ask("POST", "/api/auth/refresh", body=body)).status == 200
    assert (await guest.ask("DELETE", "/api/account")).status == 200
    assert server.sql("SELECT count(*) FROM users") == [(0,)]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/api/me/password", {"current_password": PASSWORD, "new_password": PASSWORD}),
        ("POST", "/api/me/recovery-codes", {"current_password": PASSWORD}),
        ("POST", "/api/leaderboard/opt-in", {"display_name": "Ann"}),
        ("POST", "/api/me/join", {"guest_refresh_token": ""}),
    ],
)
async def test_guest_is_refused_what_needs_a_password_or_shows_it(server, method, path, body):
    """Guests have no password, and other players don't see them."""
    guest = await begin(server)
    if "guest_refresh_token" in body:
        body = {"guest_refresh_token": (await begin(server)).refresh}
    answer = await guest.ask(method, path, body)
    assert (answer.status, answer.headers["error-code"]) == (403, "guest")


async def test_guest_can_not_upload_an_avatar(server):
    """The refusal changes nothing."""
    guest = await begin(server)
    image = b"\x89PNG\r\n\x1a\n"
    answer = await server.ask("PUT", "/api/me/avatar", {"Content-Type": "image/png"}, image, bearer=guest.access)
    assert (answer.status, answer.headers["error-code"]) == (403, "guest")


async def test_replay_of_a_guest_stays_unlisted(server):
    """No public list has the replay."""
    guest = await begin(server)
    path = f"/api/replays/{(await guest.upload()).json['id']}/listed"
    assert (await server.ask("GET", "/api/replays/recent?limit=50")).json == []
    answer = await guest.ask("PUT", path, {"listed": True})
    assert (answer.status, answer.headers["error-code"]) == (403, "guest")


async def test_replays_of_a_guest_may_take_four_mebibytes(server):
    """A player may have more."""
    guest = await begin(server)
    large = replay().rstrip().removesuffix(b"}") + b', "more": "' + b"x" * 1_000_000 + b'"}'
    statuses = [(await guest.upload(large)).status for _ in range(5)]
    assert statuses == [200] * 4 + [400]


async def test_login_with_the_name_of_a_guest_fails(server):
    """The reply is the 401 of an unknown name."""
    username = (await (await begin(server)).me())["username"]
    for password in ("", PASSWORD, "x" * 100):
        assert await refused(server.client().login(username, password)) == (401, "invalid credentials")


async def test_guest_becomes_a_player(server):
    """The id, the session and the progress stay; the player signs in with the new name."""
    guest = await begin(server)
    before = await guest.me()
    await guest.push(stats__games_won=3, stats__games_played=4)
    answer = await guest.claim()
    assert answer.json == {"id": before["id"], "username": "ann", "avatar_url": None}
    client = server.client()
    await client.login("ann", PASSWORD)
    assert (await client.pull()).merged.stats.games_played == 4
    assert len(await client.sessions()) == 2
    assert "guest" not in await guest.me()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"username": "b", "password": "x"}, 400, "username_length"),
        ({"username": "b!b", "password": "x"}, 400, "username_characters"),
        ({"username": "bob", "password": "short"}, 400, "password_length"),
        ({"username": "bob", "password": "x" * 1025}, 400, "password_too_long"),
        ({"username": "taken", "password": PASSWORD}, 409, "username_taken"),
        ({"username": "bob"}, 400, "bad_field"),
    ],
)
async def test_claim_follows_the_rules_of_registering(server, body, status, code):
    """A refused guest stays a guest."""
    await server.player("taken")
    guest = await begin(server)
    answer = await guest.claim(body)
    assert (answer.status, answer.headers["error-code"]) == (status, code)
    assert (await guest.me())["guest"] is True


@pytest.mark.parametrize("other", [{"username": "bob"}, {"password": "another one"}], ids=str)
async def test_player_can_not_claim_another_name_or_password(server, other):
    """A guest that has claimed is a player."""
    guest = await begin(server)
    await guest.claim()
    answer = await guest.claim({**NAME, **other})
    assert (answer.status, answer.headers["error-code"]) == (409, "not_a_guest")
    assert (await guest.me())["username"] == "ann"


async def test_claim_may_be_repeated(server):
    """The same name and password have the same answer, at the same time or later."""
    guest = await begin(server)
    answers = [*await gather(3, lambda _: guest.claim(), range(3)), await guest.claim()]
    assert [(answer.status, answer.json) for answer in answers] == [(200, answers[0].json)] * 4
    assert answers[0].json["username"] == "ann"


async def test_repeated_claims_have_the_limit_of_password_changes(server):
    """Right and wrong passwords count alike, in any five requests of a minute."""
    guest = await begin(server)
    await guest.claim()
    wrong = [(await guest.claim({**NAME, "password": "not it at all"})).status for _ in range(4)]
    assert (wrong, (await guest.claim()).status, (await guest.claim()).status) == ([409] * 4, 200, 429)


async def test_claim_ends_all_other_sessions(server):
    """A copy of the guest's tokens doesn't lead into the player's account."""
    key = {"guest_key": "k" * 22}
    guest, copy = await begin(server, body=key), await begin(server, body=key)
    assert (await guest.claim()).status == 200
    answers = [
        await server.ask("POST", "/api/auth/refresh", body={"refresh_token": each.refresh}) for each in (guest, copy)
    ]
    assert [answer.status for answer in answers] == [200, 401]


async def test_claim_needs_a_live_session(server):
    """The access token is valid for longer than its session, but names no session afterwards."""
    guest = await begin(server)
    await server.ask("POST", "/api/auth/logout", body={"refresh_token": guest.refresh})
    answer = await guest.claim()
    assert (answer.status, answer.headers["error-code"]) == (401, "unauthorized")
    assert (await guest.me())["guest"] is True


@pytest.mark.parametrize("wanted", [True, False, None])
async def test_claim_lists_the_replays_on_request(server, wanted):
    """Held replays stay unlisted."""
    guest = await begin(server)
    first, second = [(await guest.upload()).json["id"] for _ in range(2)]
    server.sql("UPDATE replays SET held = true WHERE id = %s", (second,))
    asked = NAME if wanted is None else {**NAME, "list_replays": wanted}
    assert (await guest.claim(asked)).status == 200
    recent = (await server.ask("GET", "/api/replays/recent?limit=50")).json
    assert [(each["id"], each["username"]) for each in recent] == ([(first, "ann")] if wanted else [])


async def test_only_one_of_simultaneous_claims_of_a_guest_succeeds(server):
    """The other names stay free."""
    guest = await begin(server)
    names = [{"username": f"ann_{number}", "password": PASSWORD} for number in range(4)]
    answers = await gather(4, guest.claim, names)
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    assert server.sql("SELECT count(*) FROM users") == [(1,)]


async def test_only_one_of_simultaneous_claims_of_a_name_succeeds(server):
    """The other guests stay guests."""
    guests = [await begin(server) for _ in range(4)]
    answers = await gather(4, lambda guest: guest.claim(), guests)
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    assert server.sql("SELECT count(*) FROM users WHERE guest") == [(3,)]


async def test_claim_of_unknown_outcome_does_not_blame_the_name(server, monkeypatch):
    """The connection is lost during the commit. The guest itself may have the name by then, as the next claim says."""
    guest, commit = await begin(server), Transaction.commit

    async def commit_and_lose(transaction):
        await commit(transaction)
        raise Interrupted("outcome unknown")

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "commit", commit_and_lose)
        lost = await guest.claim()
    assert (lost.status, lost.headers["error-code"]) == (500, "internal")
    assert (await guest.claim()).status == 200
    assert (await guest.me())["username"] == "ann"


async def test_password_from_an_operator_makes_a_guest_a_player(server):
    """A node of 1.0.0 sets it the same way."""
    guest = await begin(server)
    server.sql("UPDATE users SET password_hash = 'another'")
    assert "guest" not in await guest.me()


async def test_nodes_of_1_0_0_keep_guests_out_of_sight(server):
    """Rows that such a node writes for a guest are unlisted, invisible or refused."""
    guest = await begin(server)
    await guest.upload()
    server.sql("UPDATE replays SET unlisted = NULL")
    assert server.sql("SELECT unlisted FROM replays") == [(True,)]
    server.sql("INSERT INTO leaderboard SELECT id, 'Ann', 5, 5, now(), true FROM users")
    assert server.sql("SELECT visible FROM leaderboard") == [(False,)]
    with pytest.raises(Exception, match="a guest has no avatar"):
        server.sql("UPDATE users SET avatar_extension = 'png'")


async def test_new_guests_have_their_own_limit(reactor, shared_dsn):
    """The limit of logins leaves room, but this address may begin no third guest within the minute."""
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_GUEST_LIMIT": "2/60"})
    try:
        address = new_address()
        answers = [await running.ask("POST", "/api/auth/guest", address=address) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert 1 <= int(answers[2].headers["retry-after"]) <= 60
        login = await running.ask("POST", "/api/auth/login", body=NAME, address=address)
        assert login.status == 401
    finally:
        await running.service.stopService()


async def test_limit_of_0_turns_new_guests_off(server, reactor, shared_dsn):
    """Guests that exist sign in by their keys, and can be claimed and joined."""
    key = {"guest_key": "k" * 22}
    first, second = await begin(server, body=key), await begin(server)
    ann = await server.player("bob")
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_GUEST_LIMIT": "0"})
    try:
        assert await refused(running.client().guest()) == (403, "this service takes no new guests")
        unknown = {"guest_key": "u" * 22, "create": False}
        codes = []
        for body in (unknown, {**unknown, "create": True}):
            answer = await running.ask("POST", "/api/auth/guest", body=body)
            codes.append((answer.status, answer.headers["error-code"]))
        assert codes == [(404, "guest_unknown"), (403, "guests_off")]
        assert (await begin(running, body=key)).id == first.id
        claimed = await running.ask("POST", "/api/me/claim", body=NAME, bearer=first.access)
        assert claimed.status == 200
        assert (await join(running, ann, second.refresh)).status == 200
    finally:
        await running.service.stopService()


async def test_limit_is_checked_before_a_guest_is_refused(server):
    """The limit of password changes is checked first: the sixth request returns 429, not 403."""
    guest = await begin(server)
    body = {"current_password": PASSWORD, "new_password": PASSWORD}
    statuses = [(await guest.ask("PUT", "/api/me/password", body)).status for _ in range(6)]
    assert statuses == [403] * 5 + [429]


async def test_join_adds_the_games_of_both(server):
    """Games, wins, scores and experience add up; the guest is gone, and its replays are the player's."""
    client = await server.player("ann")
    await client.pull()
    token = client.tokens.access_token
    mine = progress_of(stats__games_won=5, stats__games_played=9, stats__lifetime_score=50, progress__total_xp=30)
    await server.ask("POST", "/api/sync/push", body=mine, bearer=token)
    guest = await begin(server)
    await guest.push(
        stats__games_won=2,
        stats__games_played=3,
        stats__lifetime_score=20,
        stats__best_single_score=700,
        progress__total_xp=600,
    )
    replay_id = (await guest.upload()).json["id"]
    answer = await join(server, client, guest.refresh)
    assert answer.status == 200, answer
    stats, progress = answer.json["merged"]["stats"], answer.json["merged"]["progress"]
    assert (stats["games_won"], stats["games_played"], stats["games_lost"], stats["lifetime_score"]) == (7, 12, 5, 70)
    assert (stats["best_single_score"], progress["total_xp"], progress["level"]) == (700, 630, 1)
    assert [each.id for each in (await client.own_replays()).replays] == [replay_id]
    assert server.sql("SELECT username FROM users") == [("ann",)]
    assert (await guest.ask("GET", "/api/me")).status == 404
    assert server.sql("SELECT replays, used_bytes FROM replay_usage") == [(1, 4096)]


async def test_games_after_a_join_are_counted_once(server):
    """The reply gives the session the sum, so its next push adds only new games."""
    client = await server.player("ann")
    await client.pull()
    guest = await begin(server)
    await guest.push(stats__games_won=2, stats__games_played=3)
    merged = (await join(server, client, guest.refresh)).json["merged"]
    merged["stats"] |= {"games_played": 4, "games_won": 3}
    pushed = await server.ask("POST", "/api/sync/push", body=merged, bearer=client.tokens.access_token)
    assert pushed.json["merged"]["stats"]["games_played"] == 4


async def test_join_may_be_repeated(server):
    """After a lost reply, the client sends the same token again; no game is added twice."""
    client = await server.player("ann")
    guest = await begin(server)
    await guest.push(stats__games_won=2, stats__games_played=3)
    answers = [await join(server, client, guest.refresh) for _ in range(3)]
    assert [answer.status for answer in answers] == [200] * 3
    assert [answer.json["merged"]["stats"]["games_played"] for answer in answers] == [3] * 3


async def test_games_after_a_repeated_join_are_counted_once(server):
    """The repeated reply includes another device's games, which the session's next push has too."""
    client, other = await server.player("ann"), server.client()
    await client.pull()
    guest = await begin(server)
    await guest.push(stats__games_won=2, stats__games_played=2)
    await join(server, client, guest.refresh)
    await other.login("ann", PASSWORD)
    theirs = (await server.ask("GET", "/api/sync/pull", bearer=other.tokens.access_token)).json["merged"]
    theirs["stats"] |= {"games_played": 5, "games_won": 5}
    await server.ask("POST", "/api/sync/push", body=theirs, bearer=other.tokens.access_token)
    merged = (await join(server, client, guest.refresh)).json["merged"]
    merged["stats"] |= {"games_played": 6, "games_won": 6}
    pushed = await server.ask("POST", "/api/sync/push", body=merged, bearer=client.tokens.access_token)
    assert pushed.json["merged"]["stats"]["games_played"] == 6


async def test_guest_without_progress_joins(server):
    """The reply is the player's progress, or the defaults if the player never pushed."""
    client = await server.player("ann")
    answer = await join(server, client, (await begin(server)).refresh)
    assert (answer.status, answer.json["merged"]["stats"]["games_played"]) == (200, 0)
    assert server.sql("SELECT count(*) FROM sync_states") == [(0,)]


async def test_only_one_of_two_players_joins_a_guest(server):
    """The other player's request returns that the guest is gone, at the same time or later."""
    ann, bob = await server.player("ann"), await server.player("bob")
    guest = await begin(server)
    await guest.push(stats__games_won=1, stats__games_played=1)
    answers = await gather(2, lambda client: join(server, client, guest.refresh), [ann, bob])
    assert sorted(answer.status for answer in answers) == [200, 409]
    (loser,) = [answer for answer in answers if answer.status == 409]
    assert loser.headers["error-code"] == "guest_gone"
    assert server.sql("SELECT count(*) FROM sync_states") == [(1,)]


async def test_simultaneous_joins_of_one_player_count_a_guest_once(server):
    """A repeat that overtakes the first waits for its lock."""
    ann = await server.player("ann")
    guest = await begin(server)
    await guest.push(stats__games_won=1, stats__games_played=1)
    answers = await gather(3, lambda _: join(server, ann, guest.refresh), range(3))
    assert {answer.status for answer in answers} == {200}
    assert {answer.json["merged"]["stats"]["games_played"] for answer in answers} == {1}


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "access", "spent", "expired"])
async def test_join_needs_a_live_refresh_token(server, token):
    """Another token spends nothing. The reply is a 409, because a 401 is about the player's own token."""
    client, guest = await server.player("ann"), await begin(server)
    fresh = guest.refresh
    if token == "access":
        token = guest.access
    elif token == "spent":
        token = guest.refresh
        body = {"refresh_token": guest.refresh}
        fresh = (await server.ask("POST", "/api/auth/refresh", body=body)).json["refresh_token"]
    elif token == "expired":
        (jti,) = server.sql("SELECT jti::text FROM refresh_tokens JOIN users ON users.id = user_id WHERE guest")[0]
        (user_id,) = server.sql("SELECT id::text FROM users WHERE guest")[0]
        signing = Tokens(SECRET.encode())
        token = signing._sign({"sub": user_id, "exp": 1_000_000_000, "kind": "refresh", "jti": jti})
    answer = await join(server, client, token)
    assert (answer.status, answer.headers["error-code"]) == (409, "not_a_guest")
    assert (await join(server, client, fresh)).status == 200


async def test_join_adds_the_replays_to_those_of_the_player(server):
    """The number and the bytes are right, for the quota and for the list of players by them."""
    ann, guest = await server.player("ann"), await begin(server)
    await ann.upload_replay(replay())
    for _ in range(2):
        await guest.upload()
    await join(server, ann, guest.refresh)
    ours = "SELECT replays, used_bytes FROM replay_usage JOIN users ON users.id = user_id WHERE username = 'ann'"
    assert server.sql(ours) == [(3, 3 * 4096)]


async def test_join_keeps_the_notes_and_marks_of_replays(server):
    """Operators' notes on a replay, and their marks, belong to its new player."""
    ann, guest = await server.player("ann"), await begin(server)
    replay_id = (await guest.upload()).json["id"]
    server.sql(
        "INSERT INTO review_seen (kind, item, user_id, admin) SELECT 'replays', id, user_id, 'root' FROM replays"
    )
    server.sql(NOTE)
    assert (await join(server, ann, guest.refresh)).status == 200
    (player,) = server.sql("SELECT id FROM users")[0]
    assert server.sql("SELECT user_id, note FROM admin_notes") == [(player, "seen by hand")]
    assert server.sql("SELECT user_id, item FROM review_seen") == [(player, replay_id)]


@pytest.mark.parametrize("way", ["claim", "join"])
async def test_events_under_the_name_of_a_former_guest_are_erased_with_the_account(server, way):
    """A device may send events under the former name or id after the claim or the join."""
    guest = await begin(server, body={"guest_key": "k" * 22})
    name = (await guest.me())["username"]
    if way == "claim":
        await guest.claim()
        player = guest.access
    else:
        client = await server.player("ann")
        await join(server, client, guest.refresh)
        name, player = guest.id, client.tokens.access_token
    event = AnalyticsEvent(id=str(uuid4()), event_type="won", client_time=datetime.now(UTC))
    await server.client().report(Batch(session_id="s", user_id=name, events=[event]))
    assert server.sql("SELECT count(*) FROM analytics_names WHERE name = %s", (name,)) == [(1,)]
    await server.ask("DELETE", "/api/account", bearer=player)
    assert server.sql("SELECT count(*) FROM analytics_names") == [(0,)]


async def test_join_of_a_player_is_refused(server):
    """The refresh token belongs to another player, or to the caller. Nothing is spent."""
    ann, bob = await server.player("ann"), await server.player("bob")
    for client in (ann, bob):
        answer = await join(server, ann, client.tokens.refresh_token)
        assert (answer.status, answer.headers["error-code"]) == (409, "not_a_guest")
        await client.refresh()


async def test_join_of_a_deleted_guest_is_refused(server):
    """The guest's games are lost."""
    ann, guest = await server.player("ann"), await begin(server)
    await guest.ask("DELETE", "/api/account")
    answer = await join(server, ann, guest.refresh)
    assert (answer.status, answer.headers["error-code"]) == (409, "guest_gone")


async def test_join_of_a_suspended_guest_is_refused(server):
    """A player can't escape a suspension by joining."""
    ann, guest = await server.player("ann"), await begin(server)
    server.sql("INSERT INTO suspensions SELECT id, now(), NULL, NULL, false FROM users WHERE guest")
    answer = await join(server, ann, guest.refresh)
    assert (answer.status, answer.headers["error-code"]) == (403, "suspended")
    assert server.sql("SELECT count(*) FROM users") == [(2,)]


async def test_too_large_join_changes_nothing(server):
    """The guest still exists."""
    ann, guest = await server.player("ann"), await begin(server)
    half = "x" * 600_000
    await server.ask("POST", "/api/sync/push", body=progress_of(zz_a=half), bearer=ann.tokens.access_token)
    await guest.push(zz_b=half)
    answer = await join(server, ann, guest.refresh)
    assert (answer.status, answer.headers["error-code"]) == (400, "sync_too_large")
    assert (await guest.me())["guest"] is True
    body = {"refresh_token": guest.refresh}
    assert (await server.ask("POST", "/api/auth/refresh", body=body)).status == 200


async def test_refused_joins_use_up_the_budget_of_large_bodies(server):
    """A join pays for both stored documents before they are decoded. Ten large pushes alone would be admitted."""
    ann, guest = await server.player("ann"), await begin(server)
    large = progress_of(zz_a="x" * 1_000_000)
    token = ann.tokens.access_token
    await server.ask("POST", "/api/sync/push", body=large, bearer=token)
    await guest.push(zz_b="x" * 1_000_000)
    codes = {(await join(server, ann, guest.refresh)).headers["error-code"] for _ in range(9)}
    assert codes == {"sync_too_large"}
    pushed = {(await server.ask("POST", "/api/sync/push", body=large, bearer=token)).status for _ in range(10)}
    assert pushed == {200, 429}
    assert (await guest.me())["guest"] is True


async def test_player_whose_replays_fill_the_quota_joins_no_guest_with_replays(reactor, shared_dsn):
    """Nothing is spent. A player with any room takes them all."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_REPLAY_QUOTA_MIB": "1"})
    try:
        ann, guest, empty = await running.player("ann"), await begin(running), await begin(running)
        await ann.upload_replay(replay())
        running.sql("UPDATE replay_usage SET used_bytes = 1048576")
        await guest.upload()
        answer = await join(running, ann, guest.refresh)
        assert (answer.status, answer.headers["error-code"]) == (400, "replay_storage_full")
        assert (await join(running, ann, empty.refresh)).status == 200
        running.sql("UPDATE replay_usage SET used_bytes = 1048575")
        assert (await join(running, ann, guest.refresh)).status == 200
    finally:
        await running.service.stopService()
