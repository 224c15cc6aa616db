"""A server for comparison: six routes of solisync, and /health, on FastAPI, uvicorn (uvloop, httptools) and asyncpg.

Run `python -m bench.peer_fastapi`. The server uses solisync's statements, rules, tokens and rate limit, and gives the
same answers, which `bench.agreement` compares. It has no access log, metrics or request deadlines, and doesn't replace
lost connections to the database. For speed, its handlers take plain requests and return plain responses, so pydantic
validates nothing, and asyncpg prepares each statement once for each connection, as is its default.
"""

import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, TypeVar
from uuid import UUID, uuid4

import asyncpg
import msgspec
import uvicorn
from fastapi import FastAPI, Request, Response
from msgspec import structs

from solisync.access.client_address import bucket, client_address
from solisync.access.rate_limit import AUTH, GAMES
from solisync.access.tokens import Tokens
from solisync.errors import STATUS, BadRequest, NotFound, Refused, TooMany, Unauthorized
from solisync.players import progress
from solisync.postgres.statement import Call
from solisync.rules.accounts import RefreshRequest, me
from solisync.rules.counting import NO_GAMES, Basis, add, counts_of, with_counts
from solisync.rules.documents import default_document, read_pushed, read_stored, revision
from solisync.rules.games import ReceivedGame, read_game, read_games, results_of
from solisync.rules.json_body import read_json
from solisync.rules.leaderboard import bests_of
from solisync.rules.merge import merge
from solisync.rules.queries import read_query
from solisync.rules.replay_lists import Recent, RecentQuery
from solisync.rules.sessions import SessionRef, user_agent
from solisync.rules.shapes import NIL, ErrorBody, canonical_uuid
from solisync.rules.sync import PAYLOAD_MAX_BYTES, Document, check_bounds
from solisync.settings.settings import ServingSettings
from solisync.storage import paging, rate_limits
from solisync.storage.players import accounts, games, leaderboard, sessions, sync
from solisync.storage.replays import recent_replays

BODY_MAX = 1_048_576
REMEMBERED_SECONDS = 1.0
HEADERS = {"server": "solisync", "x-content-type-options": "nosniff"}
PRIVATE = {**HEADERS, "cache-control": "no-store"}

_encode = msgspec.json.Encoder().encode
_bearer = re.compile(r"bearer +(.+)", re.IGNORECASE)

T = TypeVar("T")

settings = ServingSettings.from_environ(os.environ)
tokens = Tokens(settings.jwt_secret)
pool: asyncpg.Pool
_recent: tuple[float, list[Recent]] = (-REMEMBERED_SECONDS, [])


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    global pool
    size = settings.database_connections

    async def keep(connection: Any) -> None:
        """Replace asyncpg's reset of returned connections, which would cost another round trip."""

    options = {"timezone": "UTC", "statement_timeout": "5s", "lock_timeout": "4s"}
    async with asyncpg.create_pool(
        host=os.environ["BENCH_DATABASE"],
        user="solisync",
        database="postgres",
        min_size=size,
        max_size=size,
        max_queries=2**31,  # connections and statements are kept permanently, as in solisync
        max_inactive_connection_lifetime=0,
        max_cached_statement_lifetime=0,
        server_settings=options,
        init=prepare,
        reset=keep,
    ) as pool:
        yield


async def prepare(connection: Any) -> None:
    """Prepare the statements that share a round trip, in the simple protocol; asyncpg prepares the others."""
    steps = accounts.LOCK, sync.SAVE, sync.REMEMBER, sync.REMEMBER_FOR_ALL, sync.ANSWERED, leaderboard.IMPROVE
    for statement in (*steps, games.ADD, games.FORGET):
        await connection.execute(statement.preparation)


app = FastAPI(lifespan=lifespan, openapi_url=None)


async def refuse(request: Request, error: Refused) -> Response:
    headers = PRIVATE | {"error-code": error.code}
    if isinstance(error, TooMany):
        headers["retry-after"] = str(error.retry_after)
    return answer(request, _encode(ErrorBody(str(error))), headers, STATUS[error.code])


app.add_exception_handler(Refused, refuse)


def answer(request: Request, body: bytes, headers: dict[str, str] = PRIVATE, status: int = 200) -> Response:
    request_id = request.headers.get("x-request-id") or uuid4().hex
    return Response(body, status, headers | {"x-request-id": request_id}, "application/json")


def literal(step: Call) -> str:
    """The SQL of a step, with its parameters quoted."""
    statement, *parameters = step
    return f"EXECUTE {statement.name}({', '.join(map(quoted, parameters))})"


def quoted(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(quoted, value))}]::text[]"
    return "'" + str(value).replace("'", "''") + "'"


def claims_of(request: Request) -> SessionRef:
    match = _bearer.fullmatch(request.headers.get("authorization", ""))
    if match is None:
        raise Unauthorized
    return tokens.read_access(match[1], datetime.now(UTC))


async def body_of(request: Request) -> bytes:
    if int(request.headers.get("content-length", 0)) > BODY_MAX:
        raise BadRequest("body_too_large", "request body must be at most 1 MB")
    body: bytes = await request.body()
    return body


@app.get("/health")
async def health(request: Request) -> Response:
    return answer(request, b'{"status":"ok"}', HEADERS)


@app.get("/api/me")
async def show_me(request: Request) -> Response:
    player = claims_of(request).user_id
    row = await pool.fetchrow(accounts.profile.statement.sql, player)
    if row is None:
        raise NotFound("user_not_found", "user not found")
    return answer(request, _encode(me(player, *row)))


@app.get("/api/sync/pull")
async def pull(request: Request) -> Response:
    player, access_expiry = claims_of(request)
    row = await pool.fetchrow(sync.pull.statement.sql, player, access_expiry)
    if row is None:
        raise NotFound("user_not_found", "user not found")
    now = datetime.now(UTC)
    payload = default_document(player, now).encode() if row[0] is None else row[0].encode()
    if row[1]:
        counted = counts_of(read_stored(payload).payload).encode(), sha256(payload).hexdigest()
        await pool.execute(sync.PULL_UNCOUNTED.sql, player, access_expiry, *counted)
    return answer(request, b'{"merged":%b,"server_time":%b,"conflicts":[]}' % (payload, _encode(now)))


@app.post("/api/sync/push")
async def push(request: Request) -> Response:
    player, access_expiry = claims_of(request)
    payload, unknown_fields = read_pushed(await body_of(request)).document
    owner = canonical_uuid(payload.user_id)
    if owner is None or owner not in (player, NIL):
        raise BadRequest("user_id_mismatch", "user_id mismatch")
    pushed = Document(structs.replace(payload, user_id=owner), unknown_fields)
    return answer(request, await transact(merge_in, player, access_expiry, pushed))


async def transact(work: Callable[..., Awaitable[T]], player: str, *arguments: Any) -> T:
    """Run `work`, which begins a transaction and commits it, on a connection."""
    async with pool.acquire() as connection:
        try:
            return await work(connection, player, *arguments)
        except BaseException:
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
            raise


async def merge_in(connection: Any, player: str, access_expiry: int, pushed: Document) -> bytes:
    """Merge in three round trips.

    asyncpg can send several statements together only if they have no parameters, and then it returns no rows.
    """
    await connection.execute(f"BEGIN; EXECUTE lock_player('{player}')")
    row = await connection.fetchrow(sync.LOAD.sql, player, access_expiry)
    if row is None:
        raise NotFound("user_not_found", "user not found")
    now = datetime.now(UTC)
    text, counted, session, *told = row
    saved = sync.saved_from(text, counted, session and str(session), *told)
    stored = None if text is None else read_stored(text.encode())
    check_bounds(pushed, stored)
    mine, before = counts_of(pushed.payload), NO_GAMES if stored is None else counts_of(stored.payload)
    total = add(mine, before, saved.known)
    merged, conflicts = merge(
        pushed, stored, now, latest=now.date() + timedelta(days=1), had_all=total.had_all_of(saved.counts or before)
    )
    if total.basis is Basis.COUNTED:
        merged = with_counts(merged, total.counts)
    check_bounds(merged, stored)
    payload = merged.encode()
    if len(payload) > PAYLOAD_MAX_BYTES:
        raise BadRequest("sync_too_large", "sync payload too large")
    bests = bests_of(merged.payload.stats)
    told = counts_of(merged.payload).with_most_draws(saved.counts or before)
    better = bests if saved.standing.improved_by(bests) else None
    saving = sync.saving(player, payload, told, better, now, first=stored is None)
    steps = "; ".join(
        map(literal, (*saving, sync.remembering(player, saved, saved.known.after(mine, told, total.basis))))
    )
    await connection.execute(f"{steps}; COMMIT")
    return b'{"merged":%b,"server_time":%b,"conflicts":%b}' % (payload, _encode(now), _encode(conflicts))


@app.post("/api/games")
async def count_games(request: Request) -> Response:
    player, access_expiry = claims_of(request)
    read = [read_game(raw) for raw in read_games(await body_of(request)).games]
    sent = {game.game_id: game for game in reversed(read) if isinstance(game, ReceivedGame)}
    payload, counted = await transact(add_games, player, access_expiry, sent)
    parts = _encode(results_of(read, counted)), payload, _encode(datetime.now(UTC))
    return answer(
        request,
        b'{"games":%b,"merged":%b,"server_time":%b}' % parts,
        PRIVATE | {"etag": f'"{revision(payload)}"'},
    )


async def add_games(
    connection: Any, player: str, access_expiry: int, sent: dict[str, ReceivedGame]
) -> tuple[bytes, set[str]]:
    """Count new games in three round trips; return the stored progress, and the ids of these games."""
    await connection.execute(f"BEGIN; EXECUTE lock_player('{player}')")
    hit = f"{GAMES.name}:{player}", GAMES.most, GAMES.seconds
    row = await connection.fetchrow(games.LOAD.sql, player, access_expiry, [*sent], *hit)
    if row is None:
        raise NotFound("user_not_found", "user not found")
    saved, memory = games.LOAD.row(*(str(value) if isinstance(value, UUID) else value for value in row))
    admit(memory.wait)
    new = [game for game in sent.values() if not memory.has(game)]
    if not new:
        await connection.execute("COMMIT")
        return saved.payload, set()
    admit(memory.full_for)
    change, added = progress.with_new_games(player, new, memory.latest, saved, memory.now, memory.win_seconds)
    steps = (*change.steps, *games.adding(player, added.shares, memory.spare, added.win_seconds))
    answering = sync.answering(player, access_expiry, change.counts)
    await connection.execute(f"{'; '.join(map(literal, (*steps, answering)))}; COMMIT")
    return change.payload, {game.game_id for game in new}


@app.post("/api/auth/refresh")
async def refresh(request: Request) -> Response:
    assert request.client is not None
    address = client_address(request.client.host, request.headers.getlist("x-forwarded-for"), settings.trusted_proxies)
    hit = rate_limits.Hit(f"{AUTH.name}:{bucket(address)}", AUTH.most, AUTH.seconds)
    try:
        body = read_json(await body_of(request), RefreshRequest)
        now = datetime.now(UTC)
        claims = tokens.read_refresh(body.refresh_token, now)
    except Refused:
        admit(await pool.fetchval(rate_limits.HIT.sql, *hit))
        raise
    new = tokens.record(now, user_agent(request.headers.get("user-agent")))
    record = (new.jti, new.expires, new.access_expiry, new.user_agent)
    values = (claims.user_id, claims.jti, now, *record, *hit, tokens.retry_digest(claims.jti, body.retry_key))
    wait, expiry, _, _ = await pool.fetchrow(sessions.ROTATE.sql, *values)
    admit(wait)
    if expiry is None:
        raise Unauthorized
    pair = tokens.pair(claims.user_id, new._replace(access_expiry=expiry))
    return answer(request, _encode(pair))


def admit(wait: float | None) -> None:
    if wait is not None:
        raise TooMany(int(wait) + 1)


@app.get("/api/replays/recent")
async def recent(request: Request) -> Response:
    global _recent
    count = read_query(RecentQuery, request.query_params.getlist).count
    began = time.monotonic()
    if began >= _recent[0] + REMEMBERED_SECONDS:
        rows = await pool.fetch(recent_replays.PAGE.sql, *paging.END)
        _recent = began, [recent_replays.PAGE.row(str(row[0]), *row[1:]) for row in rows]
    return answer(request, _encode(_recent[1][:count]), HEADERS)


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(os.environ["BENCH_PORT"]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        log_level="warning",
    )
