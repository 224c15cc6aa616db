"""Fuzz: generated requests, along the OpenAPI document and far from it.

Source: docs/protocol.md "Common to all routes". No answer is a 5xx, the log has no failure, and nothing hangs.
"""

import re
import select
import socket
import subprocess
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.internet.threads import deferToThread

from tests.harness.constants import BIN, ROOT
from tests.harness.http_requests import new_address
from tests.harness.postgres import truncate
from tests.harness.processes import clean_environment
from tests.wire.cases import LAST, MALFORMED, UNUSUAL
from tests.wire.sockets import exchange

PATIENCE_SECONDS = 0.05  # for the answer to what may be only the beginning of a request
HANG_SECONDS = 5
FROM_THE_DOCUMENT = 3_000  # requests, at least
FROM_BYTES = 2_500  # for each way to make them


def assert_nothing_failed(process):
    """Check that the service runs on, and that its log has no failure and no 5xx."""
    assert process.popen.poll() is None
    for sign in ("Traceback", "Unhandled", "critical"):
        assert sign not in process.log, process.log[process.log.index(sign) - 2000 :][:5000]
    assert not re.findall(r" 5\d\d [0-9.]+ ms ", process.log)


@pytest.mark.limit(400)
async def test_service_matches_its_openapi_document(serve, shared_dsn, tmp_path, figure):
    """schemathesis finds no undocumented answer and no broken rule."""
    process = await serve(shared_dsn)
    words = [
        *(BIN / "schemathesis", "run", f"{process.url}/api/openapi.json", "--checks", "all", "--no-color"),
        *("--max-examples", 150, "--generation-database", "none"),
        *("--exclude-path", "/api/events"),  # whose answer never ends
    ]
    run = await deferToThread(
        subprocess.run,
        [str(word) for word in words],
        env=clean_environment(
            SCHEMATHESIS_HOOKS="tests.fire.schemathesis_hooks", SOLISYNC_URL=process.url, PYTHONPATH=ROOT
        ),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=380,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert_nothing_failed(process)
    count = len(re.findall(r" \d\d\d [0-9.]+ ms ", process.log))
    assert count > FROM_THE_DOCUMENT
    figure(f"{count} requests; {re.search('Test cases:(.+)', run.stdout, re.S)[1].split('=')[0]}".replace("\n", " "))


# Bytes.

FIRST_LINES = st.sampled_from(
    [
        b"GET /health", b"GET /api/me", b"POST /api/auth/login", b"POST /api/auth/refresh", b"POST /api/auth/register",
        b"POST /api/sync/push", b"GET /api/sync/pull", b"POST /api/replays", b"GET /api/replays/recent?limit=1",
        b"GET /api/replays/x", b"GET /avatars/x.png", b"POST /api/analytics", b"PUT /api/me/avatar", b"GET /nope",
        b"GET /api/leaderboard", b"POST /api/leaderboard/opt-in", b"DELETE /api/leaderboard/opt-in", b"OPTIONS /health",
        b"GET http://a/health", b"GET /api/daily-challenge?%", b"GET /api/openapi.json", b"OPTIONS *", b"GET //",
        b"GET /", b"GET /replays/x?move=1", b"GET /replays/" + b"0" * 8 + b"-0000-0000-0000-" + b"0" * 12,
        b"HEAD /daily/2026-04-26", b"GET /daily/2026-02-30", b"GET /account", b"GET /web/style.css", b"GET /web/x",
        b"POST /api/session", b"POST /api/session/refresh", b"PUT /api/session/password", b"DELETE /api/session",
        b"X /%ff", b"DELETE /api/me", b"get /api/me", b"GET /api/health/ready", b"POST /api/replays?" + b"x" * 3000,
    ]
)  # fmt: skip
NAMES = st.sampled_from(
    [
        b"Authorization", b"Content-Type", b"If-None-Match", b"Origin", b"X-Request-Id", b"Accept", b"Cookie", b"Range",
        b"Access-Control-Request-Method", b"Connection", b"Expect", b"X-Forwarded-For", b"Upgrade", b"TE", b"X-A",
        b"Accept-Encoding", b"Sec-Fetch-Site",
    ]
)  # fmt: skip
COOKIES = [f"{name}={value}" for name in ("solisync", "__Host-solisync") for value in ("", "x.y.z", "x; solisync=y")]
TEXTS = st.text(st.characters(max_codepoint=255, exclude_categories=["Cc"]), max_size=30)
VALUES = TEXTS | st.sampled_from(["same-origin", "application/json", "https://a", "gzip;q=0", *COOKIES])
BODIES = st.binary(max_size=60) | st.sampled_from(
    [b"{}", b"[]", b"null", b'{"events": []}', b'{"username": "\xff"}', b'{"username": "fuzz", "password": "no such"}']
)
PAGE = [b"Content-Type: application/json", b"Sec-Fetch-Site: same-origin", b"Origin: https://a"]
FAULTS = st.sampled_from(
    [
        b"X-A : b", b" X-A: b", b"\tX-A: b", b"X A: b", b"X-A", b": b", b"X-A: \0", b"X-A: \x7f", b"X\xe9: b",
        b"(X): b", b"X-A: b\nX-B: c", b"X-A: b\rX-B: c", b"Host: b", b"Content-Length: 0x1", b"Content-Length: 1, 1",
        b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding : chunked",
    ]
)  # fmt: skip
SEEDS = st.sampled_from([data for data in (*MALFORMED.values(), *UNUSUAL) if len(data) < 1000])
CRUMBS = st.binary(max_size=4) | st.sampled_from(
    [
        b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b";", b"/", b"\xff", b"0", b"5", b"-", b"=", b'"', b"*",
        b"\r\n\r\n", b"0\r\n\r\n", b"HTTP/1.1", b"HTTP/1.0", b"GET ", b"POST ", b"HEAD ", b"OPTIONS ", b"Host: a\r\n",
        b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"http://a", b"/api/me",
        b"Content-Length: 99999999999999999999\r\n", b"Authorization: Bearer x.y.z\r\n", b"ffffffffffffffff\r\n",
        b"X-Forwarded-For: ::, [::1]:80, \r\n", b"Expect: 100-continue\r\n", b"/api/replays/recent?limit=", b"%00",
    ]
)  # fmt: skip


@st.composite
def requests(draw, token, *, broken):
    """A request, of a player or not, with any fields and body; `broken` adds one fault."""
    body = draw(BODIES)
    fields = [b"%b: %b" % (name, value.encode("latin-1")) for name, value in draw(st.lists(st.tuples(NAMES, VALUES)))]
    if draw(st.booleans()):
        fields.append(b"Content-Length: %d" % len(body))
    else:
        fields.append(b"Transfer-Encoding: chunked")
        body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    if broken:
        fields.insert(draw(st.integers(0, len(fields))), draw(FAULTS))
    if draw(st.booleans()):
        fields.append(f"Authorization: Bearer {token}".encode())
    if draw(st.booleans()):
        fields += PAGE
    address = f"X-Forwarded-For: {new_address()}".encode()
    return b"\r\n".join([draw(FIRST_LINES) + b" HTTP/1.1", b"Host: a", address, *fields, b"", body])


@st.composite
def crumbled(draw):
    """A request from the tests of the wire with up to four inserted or replaced pieces."""
    data = draw(SEEDS)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(CRUMBS) + data[at + draw(st.sampled_from([0, 0, 0, 1, 2, 10, 100])) :]
    return data


def poke(port, data):
    """Send all of it and hang up once there is an answer, or both sides wait; return the answer."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS) as connection:
        try:
            connection.sendall(data)
            while b"\r\n\r\n" not in received and select.select([connection], [], [], PATIENCE_SECONDS)[0]:
                if not (more := connection.recv(65536)):
                    return received
                received += more
            connection.shutdown(socket.SHUT_WR)
            while more := connection.recv(65536):  # raises TimeoutError when the connection hangs
                received += more
        except (ConnectionResetError, BrokenPipeError):
            pass  # a refusal that came while we were sending
    return received


def statuses(received):
    """Return the statuses of the answers in it."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]


def tried(strategy, count, try_one):
    """Return the statuses of the answers to all examples; a short run takes the same ones each time."""
    seen = Counter()

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=count < FROM_BYTES,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(data):
        answers = try_one(data)
        seen.update(answers or ["closed"])
        seen["requests"] += 1

    run()
    return dict(seen)


async def test_well_formed_request_leaves_its_connection_usable(serve, shared_dsn, full, figure):
    """Any fields and any body get less than 500, and so does the next request."""
    truncate(shared_dsn)
    process = await serve(shared_dsn)
    token = (await process.player()).tokens.access_token

    def try_one(data):
        answers = statuses(exchange(process.port, data + LAST))
        assert len(answers) == 2
        assert answers[1] == 200
        assert answers[0] < 500
        return answers[:1]

    figure(await deferToThread(tried, requests(token, broken=False), FROM_BYTES if full else 100, try_one))
    assert_nothing_failed(process)


async def test_malformed_request_ends_its_connection(serve, shared_dsn, full, figure):
    """One fault among any fields gets one 4xx, or 501, and the rest isn't served."""
    truncate(shared_dsn)
    process = await serve(shared_dsn)
    token = (await process.player()).tokens.access_token

    def try_one(data):
        answers = statuses(exchange(process.port, data + LAST))
        assert len(answers) == 1
        assert 400 <= answers[0] < 500 or answers[0] == 501
        return answers

    figure(await deferToThread(tried, requests(token, broken=True), FROM_BYTES if full else 100, try_one))
    assert_nothing_failed(process)


@pytest.mark.short
async def test_random_bytes_do_no_harm(serve, shared_dsn, full, figure):
    """Any mixture of requests and garbage gets less than 500, 501 or no answer, and no connection hangs."""
    process = await serve(shared_dsn)

    def try_one(data):
        answers = statuses(poke(process.port, data))
        assert all(status < 500 or status == 501 for status in answers)
        return answers

    figure(await deferToThread(tried, crumbled(), FROM_BYTES if full else 100, try_one))
    assert_nothing_failed(process)
