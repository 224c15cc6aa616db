"""Yardstick: four routes of solisync on plain Klein and txpostgres. Run: `python -m bench.klein_routes`.

/health answers with a constant. The others check the access token (except replays, which are public), execute one
prepared statement, and answer. There are no request limits, deadlines, access log or metrics, and lost connections to
the database are not replaced.
"""

import os
from datetime import UTC, datetime
from typing import Any

import msgspec
from klein import Klein
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.web.server import Request, Site
from txpostgres import txpostgres

from solisync.access.tokens import AccessClaims, Tokens
from solisync.postgres.statement import Statement
from solisync.rules.accounts import me
from solisync.settings.settings import ServingSettings
from solisync.storage import accounts, replays, sync

_encode = msgspec.json.Encoder().encode

settings = ServingSettings.from_environ(os.environ)
tokens = Tokens(settings.jwt_secret)
app = Klein()


class Connection(txpostgres.Connection):  # type: ignore[misc]
    """A connection that prepares the statements when it connects."""

    def connect(self, *arguments: Any, **options: Any) -> Deferred[Any]:
        statements = (accounts.PROFILE, sync.PULL, replays.FETCH)
        preparation = "; ".join(statement.preparation for statement in statements)
        connecting: Deferred[Any] = super().connect(*arguments, **options)
        return connecting.addCallback(lambda _: self.runOperation(preparation)).addCallback(lambda _: self)


class Pool(txpostgres.ConnectionPool):  # type: ignore[misc]
    """A pool of as many connections as a process of solisync has."""

    connectionFactory = Connection
    min = settings.database_connections


pool = Pool(None, f"host={os.environ['BENCH_DATABASE']} user=solisync dbname=postgres")


def claims_of(request: Request) -> AccessClaims:
    return tokens.read_access((request.getHeader("Authorization") or "").removeprefix("Bearer "), datetime.now(UTC))


async def row_of(statement: Statement, *parameters: object) -> tuple[Any, ...]:
    rows: list[tuple[Any, ...]] = await pool.runQuery(statement.execution, parameters)
    return rows[0]


def answer(request: Request, body: bytes) -> bytes:
    request.setHeader("Content-Type", "application/json")
    request.setHeader("Content-Length", str(len(body)))
    return body


@app.route("/health")
def constant(request: Request) -> bytes:
    return answer(request, b'{"status":"ok","version":"0.1.0"}')


@app.route("/api/me")
async def show_me(request: Request) -> bytes:
    player = claims_of(request).user_id
    return answer(request, _encode(me(player, *await row_of(accounts.PROFILE, player))))


@app.route("/api/sync/pull")
async def pull(request: Request) -> bytes:
    payload, *_ = await row_of(sync.PULL, *claims_of(request))
    now = _encode(datetime.now(UTC))
    return answer(request, b'{"merged":%b,"server_time":%b,"conflicts":[]}' % (payload.encode(), now))


@app.route("/api/replays/<replay_id>")
async def replay(request: Request, replay_id: str) -> bytes:
    (body,) = await row_of(replays.FETCH, replay_id)
    return answer(request, body.encode())


class QuietSite(Site):
    """A site without an access log."""

    displayTracebacks = False

    def log(self, request: object) -> None:
        pass


def main() -> None:
    """Open the pool, then listen."""
    site = QuietSite(app.resource())
    port = int(os.environ["BENCH_PORT"])
    pool.start().addCallback(lambda _: reactor.listenTCP(port, site, interface="127.0.0.1"))  # type: ignore[arg-type]
    reactor.run()


if __name__ == "__main__":
    main()
