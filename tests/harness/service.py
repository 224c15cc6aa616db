"""The service in this process, on a local port."""

import time

import msgspec
import pytest

from solisync import housekeeping
from solisync.client import ApiError, Client
from solisync.players import history
from solisync.service import make_service
from solisync.settings.settings import ServingSettings
from solisync.settings.table import TABLE
from tests.harness.constants import DSN_PASSWORD, FAST_BCRYPT, NO_DATA_DIR, PASSWORD, PATIENCE, SECRET
from tests.harness.error_codes import check_error_code
from tests.harness.http_requests import Answer, http_client, new_address
from tests.harness.postgres import run_sql

housekeeping.EVERY_SECONDS = 3_600.0  # a round would delete what another test on the same database counts
history.EVERY_SECONDS = 3_600.0  # a round would add rows that another test counts
POOL_SIZE = next(int(setting.default) for setting in TABLE if setting.field == "database_connections")


def environment(dsn, **more):
    """The environment variables of a service under test."""
    return {
        "JWT_SECRET": SECRET,
        "DATABASE_URL": f"{dsn} password={DSN_PASSWORD}",
        "SOLISYNC_DATA_DIR": NO_DATA_DIR,
        "SOLISYNC_LISTEN": "tcp:0:interface=127.0.0.1",
        "SOLISYNC_TRUSTED_PROXIES": "127.0.0.1",
        "SOLISYNC_CHECKERS": "0",  # tests of the checks start their own
        **more,
    }


async def refused(call):
    """Return the status and the message of a client's call that must fail."""
    with pytest.raises(ApiError) as caught:
        await call
    return caught.value.status, caught.value.message


class Reachable:
    """A service with a local `port`, a `url`, and the `dsn` of its database.

    Connections are kept between requests only if the service runs longer than a test: when a service stops, it waits a
    second for the clients of kept connections.
    """

    keeps_connections = False

    def __init__(self, port, dsn=None):
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.dsn = dsn

    def client(self, address=None):
        """A client with a new address, as named by a trusted proxy."""
        http = http_client(keep=self.keeps_connections)
        return Client(self.url, http=http, headers={"X-Forwarded-For": address or new_address()})

    async def ask(self, method, path, headers=None, body=None, *, bearer=None, address=None):
        """Send a request; a body of bytes is sent unchanged, any other as JSON."""
        headers = {"X-Forwarded-For": address or new_address(), **(headers or {})}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        if body is not None and not isinstance(body, bytes):
            body = msgspec.json.encode(body)
        http = http_client(keep=self.keeps_connections)
        response = await http.request(method, self.url + path, headers=headers, data=body)
        answer = Answer(
            response.code,
            {name.decode().lower(): values[0].decode() for name, values in response.headers.getAllRawHeaders()},
            await response.content(),
        )
        check_error_code(answer.status, answer.headers, method, path)
        return answer

    async def player(self, name="ann"):
        """Register a player, and return its client."""
        client = self.client()
        await client.register(name, PASSWORD)
        return client

    def sql(self, statement, parameters=None):
        """Run a statement on the service's database."""
        return run_sql(self.dsn, statement, parameters)


class Running(Reachable):
    """A service in this process."""

    def __init__(self, service, dsn):
        super().__init__(service.address.port, dsn)
        self.service = service

    @property
    def at_rest(self):
        """True while all connections to the database are open and idle."""
        return self.service.parts.database.pool.idle == self.service.parts.settings.database_connections

    @property
    def cached_lists(self):
        """The caches of the leaderboard and of the newest replays."""
        return self.service.parts.board, self.service.parts.recent

    def forget_lists(self):
        """Forget the cached lists, because the database was emptied without the service."""
        for cache in self.cached_lists:
            cache.invalidate()


def begin(reactor, dsn, *, settings=None, **options):
    """Start a separate service, without waiting for it."""
    service = make_service(
        ServingSettings.from_environ(environment(dsn, **(settings or {}))),
        reactor,
        **{"bcrypt_cost": FAST_BCRYPT, **options},
    )
    service.privilegedStartService()
    service.startService()
    return Running(service, dsn)


async def start(reactor, dsn, *, settings=None, **options):
    """Start a separate service and wait for it; stop it with `await running.service.stopService()`."""
    running = begin(reactor, dsn, settings=settings, **options)
    await ready(reactor, running.client())
    return running


async def ready(reactor, client, seconds=PATIENCE):
    """Wait until a service reports that it is ready."""
    from twisted.internet.task import deferLater

    deadline = time.monotonic() + seconds
    while True:
        try:
            return await client.ready()
        except Exception:
            if time.monotonic() > deadline:
                raise
            await deferLater(reactor, 0.05)
