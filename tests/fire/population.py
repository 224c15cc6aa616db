"""Guests, players and restrictions, counted before and after an operation that must lose none."""

from twisted.internet.task import deferLater

from tests.harness.administration import administration
from tests.harness.constants import PASSWORD
from tests.harness.housekeeping import make_housekeeping
from tests.harness.http_requests import new_address
from tests.harness.payloads import progress_of, replay
from tests.harness.postgres import run_sql

COUNTS = """
    SELECT (SELECT count(*) FROM users WHERE guest), (SELECT count(*) FROM users WHERE guest IS NULL),
        (SELECT count(*) FROM sync_states), (SELECT count(*) FROM replays), (SELECT count(*) FROM suspensions),
        (SELECT count(*) FROM access_cutoffs), (SELECT count(*) FROM admins), (SELECT count(*) FROM guest_keys)
"""


class Device:
    """A device with the key of a guest."""

    def __init__(self, number):
        self.key, self.games, self.pair = f"{number:022}", number + 1, None

    async def sign_in(self, service, **more):
        body = {"guest_key": self.key, **more}
        answer = await service.ask("POST", "/api/auth/guest", body=body, address=new_address())
        if answer.status == 200:
            self.pair = answer.json
        return answer

    async def play(self, service):
        token = self.pair["access_token"]
        body = progress_of(stats__games_played=self.games, stats__games_won=self.games)
        assert (await service.ask("POST", "/api/sync/push", body=body, bearer=token)).status == 200
        assert (await service.ask("POST", "/api/replays", body=replay(), bearer=token)).status == 200

    async def refresh(self, service):
        body = {"refresh_token": self.pair["refresh_token"]}
        answer = await service.ask("POST", "/api/auth/refresh", body=body, address=new_address())
        if answer.status == 200:
            self.pair |= answer.json
        return answer.status

    async def counted(self, service):
        answer = await service.ask("GET", "/api/sync/pull", bearer=self.pair["access_token"])
        return answer.json["merged"]["stats"]["games_played"]


class Population:
    """Guests with games, players, a suspension, a cut-off and an admin."""

    def __init__(self, reactor, open_database, guests):
        self.reactor, self.open_database = reactor, open_database
        self.devices = [Device(number) for number in range(guests)]

    async def settle(self, service, dsn):
        """Fill the database."""
        self.administrate = administration(self.reactor, dsn)
        for device in self.devices:
            assert (await device.sign_in(service)).json["created"]
            await device.play(service)
        for name in ("ann", "bob", "cem"):
            await service.client().register(name, PASSWORD)
        self.cut_off = service.client()
        await self.cut_off.login("cem", PASSWORD)
        await self.administrate("users", "suspend", "bob", "--until", "7d", "--yes")
        await self.administrate("sessions", "revoke", "cem", "--access", "--yes")
        await self.administrate("admins", "add", "root")
        while await self.is_let_in(service):  # each process learns of a cut-off within a second
            await deferLater(self.reactor, 0.01)
        self.before = run_sql(dsn, COUNTS)

    async def is_let_in(self, service):
        """Return whether the access token that was cut off works."""
        answer = await service.ask("GET", "/api/me", bearer=self.cut_off.tokens.access_token)
        return answer.status == 200

    async def check(self, service, dsn, *, revoked=()):
        """Run housekeeping; count everything, and sign everybody in."""
        housekeeping = make_housekeeping(self.open_database(dsn), self.reactor)
        for _ in range(3):
            await housekeeping.prune()
        assert run_sql(dsn, COUNTS) == self.before
        for token in revoked:
            body = {"refresh_token": token}
            answer = await service.ask("POST", "/api/auth/refresh", body=body, address=new_address())
            assert answer.status == 401
        for device in self.devices:
            id = device.pair["player"]["id"]
            assert (await device.sign_in(service, create=False)).json["player"]["id"] == id
            assert await device.counted(service) == device.games
        await service.client().login("ann", PASSWORD)
        body = {"username": "bob", "password": PASSWORD}
        assert (await service.ask("POST", "/api/auth/login", body=body, address=new_address())).status == 403
        assert not await self.is_let_in(service)
        assert run_sql(dsn, COUNTS) == self.before
