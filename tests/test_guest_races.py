"""Guests beside simultaneous requests and housekeeping (docs/protocol.md "Guests")."""

import json
import random
import socket
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from solisync.errors import Unavailable
from solisync.storage.players import guests
from tests.harness.concurrency import gather, until
from tests.harness.constants import PASSWORD
from tests.harness.housekeeping import make_housekeeping
from tests.harness.payloads import progress_of, replay
from tests.harness.postgres import connect, lock_waiters


class Device:
    """A device of a guest or a player, on any of several nodes."""

    def __init__(self, nodes, chance):
        self.nodes, self.chance, self.access, self.refresh, self.games = nodes, chance, None, None, 0

    async def http(self, method, path, body=None):
        return await self.chance.choice(self.nodes).ask(method, path, body=body, bearer=self.access)

    async def begin(self, path="/api/auth/guest", body=None):
        answer = await self.http("POST", path, body)
        self.access, self.refresh = answer.json["access_token"], answer.json["refresh_token"]
        await self.http("GET", "/api/sync/pull")

    async def play(self):
        """Play a game and push it; count it if the push is acknowledged."""
        body = progress_of(stats__games_played=self.games + 1, stats__games_won=self.games + 1)
        answer = await self.http("POST", "/api/sync/push", body)
        assert answer.status in (200, 404)
        self.games += answer.status == 200


async def counted(device):
    answer = await device.http("GET", "/api/sync/pull")
    return answer.json["merged"]["stats"]["games_played"]


async def begun(nodes, chance, name=None):
    device = Device(nodes, chance)
    if name is None:
        await device.begin()
    else:
        await device.begin("/api/auth/register", {"username": name, "password": PASSWORD})
    return device


async def test_join_keeps_every_acknowledged_game(nodes, no_deadlocks, full):
    """A guest plays and uploads on one node while the player joins it on another, twice at the same time."""
    chance = random.Random(5)
    for number in range(40 if full else 6):
        player, guest = await begun(nodes, chance, f"player_{number}"), await begun(nodes, chance)
        await player.play()
        await guest.play()

        async def act(kind, player=player, guest=guest):
            if kind == "join":
                answer = await player.http("POST", "/api/me/join", {"guest_refresh_token": guest.refresh})
                assert answer.status == 200
            for _ in range(4 if kind == "play" else 0):
                await guest.play()
                assert (await guest.http("POST", "/api/replays", replay())).status in (200, 404)

        kinds = ["play", "join", "join"]
        chance.shuffle(kinds)
        await gather(3, act, kinds)
        assert await counted(player) == player.games + guest.games
    orphans = "SELECT count(*) FROM replays WHERE user_id NOT IN (SELECT id FROM users WHERE guest IS NULL)"
    assert nodes[0].sql(orphans) == [(0,)]


async def test_claim_and_join_of_one_guest_exclude_each_other(nodes, no_deadlocks):
    """Either the guest becomes a player with its games, or its games go to the other player."""
    chance = random.Random(6)
    for number in range(6):
        player, guest = await begun(nodes, chance, f"player_{number}"), await begun(nodes, chance)
        await guest.play()

        async def act(kind, player=player, guest=guest, number=number):
            if kind == "claim":
                body = {"username": f"claimed_{number}", "password": PASSWORD}
                return (await guest.http("POST", "/api/me/claim", body)).status
            return (await player.http("POST", "/api/me/join", {"guest_refresh_token": guest.refresh})).status

        claimed, joined = await gather(2, act, ["claim", "join"])
        assert (claimed, joined) in [(200, 409), (404, 200)], (claimed, joined)
        assert await counted(player) == (joined == 200)


def age(server, days, *, returned=False):
    """Let the last use of all guests be some days ago."""
    used = "UPDATE users SET guest_used_at = now() - make_interval(days => %s), guest_returned = %s"
    server.sql(used, (days, returned or None))


async def test_sign_in_races_with_the_deletion_by_housekeeping(nodes, open_database, reactor, no_deadlocks):
    """The key of a guest that was not used for long signs in to it, or is unknown; it is never gone."""
    chance = random.Random(7)
    rounds = make_housekeeping(open_database(size=1), reactor)
    for number in range(6):
        key = {"guest_key": f"{number}" * 22}
        guest = Device(nodes, chance)
        await guest.begin(body=key)
        await guest.http("POST", "/api/auth/logout", {"refresh_token": guest.refresh})
        age(nodes[0], 31)

        async def act(kind, key=key, guest=guest):
            if kind == "prune":
                return await rounds.prune()
            return (await guest.http("POST", "/api/auth/guest", {**key, "create": False})).status

        _, status = await gather(2, act, ["prune", "sign in"])
        assert status in (200, 404)
        assert nodes[0].sql("SELECT count(*) FROM users") == [(status == 200,)]
        nodes[0].sql("DELETE FROM users")


@pytest.mark.parametrize(
    ("state", "days", "returned", "left"),
    [
        ("guest", 29, False, True),
        ("guest", 31, False, False),
        ("guest", 179, True, True),
        ("guest", 181, True, False),
        ("live", 400, True, True),
        ("player", 400, False, True),
    ],
)
async def test_housekeeping_deletes_guests_that_were_not_used_for_long(
    server, open_database, reactor, state, days, returned, left
):
    """After 180 days, or after 30 if used on one day alone, with all their data. A session keeps its guest."""
    counts = []
    device = await begun([server], random.Random(1), "ann" if state == "player" else None)
    await device.play()
    await device.http("POST", "/api/replays", replay())
    if state != "live":
        await device.http("POST", "/api/auth/logout", {"refresh_token": device.refresh})
    age(server, days, returned=returned)
    housekeeping = make_housekeeping(open_database(), reactor, show=lambda **numbers: counts.append(numbers["guests"]))
    await housekeeping.prune()
    assert server.sql("SELECT count(*) FROM users") == [(left,)]
    assert server.sql("SELECT count(*) FROM replays") == [(left,)]
    assert counts[-1] == (left and state != "player")


async def test_only_an_abandoned_guest_is_locked_for_its_deletion(server, open_database):
    """Another guest is abandoned; this one has been used, has a session, or has become a player since."""
    chance = random.Random(1)
    database, devices = open_database(), [await begun([server], chance) for _ in range(4)]
    for device in devices[:3]:
        await device.http("POST", "/api/auth/logout", {"refresh_token": device.refresh})
    ids = [(await device.http("GET", "/api/me")).json["id"] for device in devices]
    age(server, 400)
    server.sql("UPDATE users SET guest_used_at = now() WHERE id = %s", (ids[1],))
    server.sql("UPDATE users SET guest = NULL WHERE id = %s", (ids[2],))
    locked = [await database.transact(guests.lock_abandoned, each, 180) for each in (*ids, ids[0][:-12] + "0" * 12)]
    assert locked == [True, False, False, False, False]


async def test_join_locks_both_accounts(server, open_database):
    """A push, a claim or a deletion of either account waits for the join."""
    chance = random.Random(1)
    devices = [await begun([server], chance, "ann"), await begun([server], chance)]
    player, guest = [(await device.http("GET", "/api/me")).json["id"] for device in devices]

    async def free(transaction, *pair):
        await guests.lock_pair(transaction, *pair)
        return server.sql("SELECT id FROM users FOR NO KEY UPDATE SKIP LOCKED")

    for pair in ((player, guest), (guest, player)):
        assert await open_database().transact(free, *pair) == []


async def test_use_of_a_guest_is_dated_also_on_nodes_of_1_1_0(server):
    """A statement of that version begins or refreshes a session, and names no column of guests."""
    guest = await begun([server], random.Random(1))
    used = "SELECT guest_used_at > now() - interval '1 minute', guest_returned FROM users"
    assert server.sql(used) == [(True, None)]
    age(server, 3)
    server.sql("UPDATE users SET access_expiries = with_access_expiry(access_expiries, 1)")
    assert server.sql(used) == [(True, True)]
    server.sql("UPDATE users SET guest_used_at = now() + interval '9 days'")
    await guest.http("POST", "/api/auth/refresh", {"refresh_token": guest.refresh})
    assert server.sql("SELECT guest_used_at > now() + interval '8 days' FROM users") == [(True,)]


async def test_use_of_a_guest_is_not_before_the_retention_clock(server):
    """A clock that is a year behind for a minute makes no guest old."""
    server.sql("UPDATE retention_clock SET at = now() + interval '365 days'")
    await begun([server], random.Random(1))
    assert server.sql("SELECT guest_used_at > now() + interval '364 days' FROM users") == [(True,)]


async def test_housekeeping_goes_through_all_guests_page_by_page(server, open_database, reactor):
    """One run looks at all pages, of which some have nothing to delete."""
    devices = [await begun([server], random.Random(number)) for number in range(5)]
    for device in devices:
        await device.http("POST", "/api/auth/logout", {"refresh_token": device.refresh})
    age(server, 31)
    server.sql("UPDATE users SET guest_used_at = now() WHERE id = (SELECT min(id::text)::uuid FROM users)")
    await make_housekeeping(open_database(), reactor, batch=2).prune()
    assert server.sql("SELECT count(*) FROM users") == [(1,)]


async def test_housekeeping_forgets_joined_guests_after_30_days(server, open_database, reactor):
    """Until then a join can be repeated."""
    await server.player("ann")
    for days in (29, 31):
        joined_at = datetime.now(UTC) - timedelta(days=days)
        server.sql("INSERT INTO joined_guests SELECT gen_random_uuid(), id, %s FROM users", (joined_at,))
    await make_housekeeping(open_database(), reactor).prune()
    assert server.sql("SELECT now() - joined_at < interval '30 days' FROM joined_guests") == [(True,)]


async def test_failed_join_changes_nothing(server, monkeypatch):
    """The database fails in the middle. The guest keeps its token and its games, and the next attempt succeeds."""
    chance = random.Random(2)
    player, guest = await begun([server], chance, "ann"), await begun([server], chance)
    await guest.play()
    real = guests.move

    async def fail(*arguments):
        await real(*arguments)
        raise Unavailable

    monkeypatch.setattr(guests, "move", fail)
    body = {"guest_refresh_token": guest.refresh}
    assert (await player.http("POST", "/api/me/join", body)).status == 503
    monkeypatch.setattr(guests, "move", real)
    assert (await counted(player), await counted(guest)) == (0, 1)
    assert (await player.http("POST", "/api/me/join", body)).status == 200
    assert await counted(player) == 1


class HangUp:
    """A client that hangs up while its request waits for the lock of a row."""

    def __init__(self, server, reactor):
        self.server, self.reactor = server, reactor

    async def send(self, path, body, *, bearer=None, locked):
        """Send a request, close the connection while it waits for the player's row, and let it end."""
        content = json.dumps(body)
        token = f"Authorization: Bearer {bearer}\r\n" if bearer else ""
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\n{token}Content-Length: {len(content)}\r\n\r\n"
        with closing(connect(self.server.dsn)) as blocking, blocking.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT FROM users WHERE username = %s FOR UPDATE", (locked,))
            with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
                connection.sendall((head + content).encode())
                await until(self.reactor, lambda: lock_waiters(self.server.dsn))
            cursor.execute("COMMIT")
        await until(self.reactor, lambda: self.server.at_rest)


async def test_refresh_can_be_repeated_when_the_client_has_hung_up(server, reactor):
    """The refresh is committed nevertheless, and its repeat returns the tokens."""
    client = await server.player("ann")
    body = {"refresh_token": client.tokens.refresh_token, "retry_key": "a-key-of-one-refresh"}
    await HangUp(server, reactor).send("/api/auth/refresh", body, locked="ann")
    assert server.sql("SELECT spent_jti IS NOT NULL FROM refresh_tokens") == [(True,)]
    assert (await server.ask("POST", "/api/auth/refresh", body=body)).status == 200


async def test_join_can_be_repeated_when_the_client_has_hung_up(server, reactor):
    """The join is committed nevertheless, and its repeat returns the sum."""
    chance = random.Random(3)
    player, guest = await begun([server], chance, "ann"), await begun([server], chance)
    await guest.play()
    body = {"guest_refresh_token": guest.refresh}
    await HangUp(server, reactor).send("/api/me/join", body, bearer=player.access, locked="ann")
    assert server.sql("SELECT count(*) FROM users") == [(1,)]
    answer = await player.http("POST", "/api/me/join", body)
    assert (answer.status, answer.json["merged"]["stats"]["games_played"]) == (200, 1)


async def test_claim_holds_when_the_client_has_hung_up(server, reactor):
    """A repeated claim succeeds, and the player logs in."""
    guest = await begun([server], random.Random(4))
    name = (await guest.http("GET", "/api/me")).json["username"]
    body = {"username": "ann", "password": PASSWORD}
    await HangUp(server, reactor).send("/api/me/claim", body, bearer=guest.access, locked=name)
    assert (await guest.http("POST", "/api/me/claim", body)).status == 200
    await server.client().login("ann", PASSWORD)


async def test_key_of_a_guest_that_was_deleted_by_age_is_unknown(server, open_database, reactor):
    """The same device may create a guest with it again."""
    guest, key = Device([server], random.Random(1)), {"guest_key": "k" * 22}
    await guest.begin(body=key)
    await guest.http("POST", "/api/auth/logout", {"refresh_token": guest.refresh})
    age(server, 31)
    await make_housekeeping(open_database(), reactor).prune()
    assert (await guest.http("POST", "/api/auth/guest", {**key, "create": False})).status == 404
    assert (await guest.http("POST", "/api/auth/guest", key)).json["created"] is True


async def test_housekeeping_forgets_keys_that_are_gone_for_180_days(server, open_database, reactor):
    """Until then they answer that their guest is gone."""
    for days in (179, 181):
        gone = "INSERT INTO guest_keys (digest, gone_at) VALUES (sha256(%s), now() - make_interval(days => %s))"
        server.sql(gone, (str(days).encode(), days))
    await make_housekeeping(open_database(), reactor).prune()
    assert server.sql("SELECT gone_at > now() - interval '180 days' FROM guest_keys") == [(True,)]
