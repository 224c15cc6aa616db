"""The samples for nginx, HAProxy and Caddy, with the real programs in front of the real service."""

import http.client
import os
import re
import signal
from contextlib import closing

import pytest
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.commands.smoke import PIXEL
from tests.deploy.programs import optional
from tests.deploy.proxies import NAME, STARTS, CountingService, Crowd, start_haproxy, start_nginx
from tests.harness.concurrency import wait_for
from tests.harness.constants import PASSWORD, PATIENCE, ROOT
from tests.harness.entry_points import SERVE
from tests.harness.postgres import truncate
from tests.harness.processes import free_port
from tests.harness.service import environment

MIB = 2**20
PROGRAMS = [
    pytest.param("nginx", marks=pytest.mark.needs("nginx", "openssl")),
    pytest.param("haproxy", marks=pytest.mark.needs("haproxy", "openssl")),
    pytest.param("caddy", marks=optional("caddy")),
]
TOO_LARGE = (413, {"error": "request body must be at most 1 MB"})


def start_service(launch, dsn, path, **more):
    """Start the service at a socket, without trusted proxies; it has several workers, so that they can be replaced."""
    variables = {"SOLISYNC_LISTEN": f"unix:{path}:mode=660", "SOLISYNC_TRUSTED_PROXIES": "", "SOLISYNC_WORKERS": "2"}
    return launch(*SERVE, **environment(dsn, **variables | more))


def ready_workers(service, count=2):
    wait_for(lambda: service.log.count(" is ready") >= count)


@pytest.fixture
def behind(launch, place, shared_dsn):
    """Start the service, and a proxy in front of it."""

    async def behind(program):
        truncate(shared_dsn)
        service = start_service(launch, shared_dsn, place / "http.sock")
        await deferToThread(ready_workers, service)
        proxy = await deferToThread(STARTS[program], launch, place, place / "http.sock")
        return service, proxy

    return behind


@pytest.mark.parametrize("program", PROGRAMS)
async def test_each_client_has_its_own_limit(behind, program):
    """The address identifies a client; a forged X-Forwarded-For changes nothing."""
    _, proxy = await behind(program)

    def report(source, number=0):
        forged = {"X-Forwarded-For": f"192.0.2.{number}", "Forwarded": f"for=192.0.2.{number}"}
        return proxy.ask("POST", "/api/analytics", {}, forged, source=source)[0]

    def run():
        assert [report("127.0.0.2", number) for number in range(7)] == [400] * 5 + [429] * 2
        assert [report("127.0.0.3", number) for number in range(7)] == [400] * 5 + [429] * 2
        assert report("127.0.0.4") == 400

    await deferToThread(run)


@pytest.mark.parametrize("program", PROGRAMS)
async def test_service_refuses_large_bodies_behind_a_proxy(behind, program):
    """1 MiB arrives; one byte more gets the answer of the service, with a length or in chunks."""
    _, proxy = await behind(program)

    def push(size, *, chunked=False):
        body = iter([b"x" * size]) if chunked else b"x" * size
        return proxy.ask("POST", "/api/sync/push", body)[:2]

    def run():
        tokens = proxy.ask("POST", "/api/auth/register", {"username": "ann", "password": PASSWORD})[1]
        headers = {"Authorization": f"Bearer {tokens['access_token']}", "Content-Type": "image/png"}
        picture = PIXEL.ljust(MIB, b"\0")
        assert push(MIB) == push(MIB, chunked=True) == (401, {"error": "unauthorized"})
        assert push(MIB + 1) == push(MIB + 1, chunked=True) == TOO_LARGE
        assert proxy.ask("PUT", "/api/me/avatar", picture, headers)[0] == 200
        answer = proxy.ask("PUT", "/api/me/avatar", picture + b"\0", headers)
        assert answer[:2] == (400, {"error": "avatar must be at most 1 MB"})

    await deferToThread(run)


@pytest.mark.parametrize("program", PROGRAMS[:2])  # Caddy first waits for the next part of the body
async def test_very_large_body_is_refused_before_it_is_read(behind, program):
    """A client that announces 100 MiB gets the answer after its header."""
    _, proxy = await behind(program)

    def run():
        connection = proxy.connect()
        connection.putrequest("POST", "/api/sync/push", skip_host=True)
        connection.putheader("Host", NAME)
        connection.putheader("Content-Length", str(100 * MIB))
        connection.endheaders(b"x" * 1000)
        response = connection.getresponse()
        assert (response.status, response.getheader("Content-Type")) == (413, "application/json")
        connection.close()

    await deferToThread(run)


@pytest.mark.parametrize("program", PROGRAMS)
async def test_pages_can_log_in_through_a_proxy(behind, program):
    """The service gets the page's origin, and its cookie comes through; a page of another site is refused."""
    _, proxy = await behind(program)
    page = {"Origin": f"https://{NAME}", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}

    def run():
        player = {"username": "ann", "password": PASSWORD, "register": True}
        status, _, headers = proxy.ask("POST", "/api/session", player, page)
        cookie, _, attributes = headers["Set-Cookie"].partition("; ")
        assert (status, cookie.partition("=")[0]) == (200, "__Host-solisync")
        assert "; Secure; HttpOnly; SameSite=Strict" in attributes
        assert proxy.ask("POST", "/api/session/refresh", None, page | {"Cookie": cookie})[0] == 200
        assert proxy.ask("DELETE", "/api/session", None, page | {"Origin": "https://evil.example"})[0] == 403

    await deferToThread(run)


@pytest.mark.parametrize("program", PROGRAMS)
async def test_proxy_redirects_http_and_hides_metrics(behind, program):
    """Port 80 only redirects to TLS, and metrics are not public."""
    _, proxy = await behind(program)

    def run():
        assert proxy.ask("GET", "/metrics")[:2] == (404, {"error": "not found"})
        if program == "caddy":  # which does so by itself, on ports that are its own
            return
        plain = http.client.HTTPConnection("127.0.0.1", proxy.plain_port, timeout=PATIENCE)
        plain.request("GET", "/api/health?x=1", headers={"Host": NAME})
        response = plain.getresponse()
        assert (response.status, response.getheader("Location")) == (308, f"https://{NAME}/api/health?x=1")
        plain.close()

    await deferToThread(run)


@pytest.mark.parametrize("program", PROGRAMS)
async def test_proxy_keeps_connections_to_the_service(launch, place, program, figure):
    """Many requests of a client share few connections."""
    service = CountingService(place / "http.sock")

    def run():
        proxy = STARTS[program](launch, place, place / "http.sock")
        connection = proxy.connect()
        before = service.connections
        for _ in range(50):
            assert proxy.ask("GET", "/", connection=connection)[0] == 200
        connection.close()
        return service.connections - before

    try:
        made = await deferToThread(run)
    finally:
        await deferToThread(service.shutdown)
        service.server_close()
    figure(f"{program}: 50 requests over {made} connection(s)")
    assert made <= 5  # health checks have connections of their own


@pytest.mark.parametrize("program", PROGRAMS)
async def test_reload_behind_a_proxy_drops_no_request(behind, program, reactor, figure):
    """SIGHUP replaces both workers, and every request is answered by one of them."""
    service, proxy = await behind(program)
    crowd = Crowd(proxy)
    rounds = 3
    for done in range(rounds):
        await deferLater(reactor, 0.5)
        os.kill(service.pid, signal.SIGHUP)
        await deferToThread(wait_for, lambda times=done + 1: service.log.count("replaced all workers") >= times)
    await deferLater(reactor, 1.5)  # the last connections of the old ones are closed after a second
    outcomes = await deferToThread(crowd.stop)
    figure(f"{program}: {rounds} reloads, {outcomes}")
    assert crowd.wrong == []
    assert set(outcomes) == {200, 401}


@pytest.mark.parametrize("program", PROGRAMS)
async def test_proxy_without_a_service_returns_its_503(behind, program):
    """The answer is the one that the service itself gives when it can't serve."""
    service, proxy = await behind(program)
    assert service.stop() == 0
    status, said, headers = await deferToThread(proxy.ask, "GET", "/api/health")
    assert (status, said) == (503, {"error": "service unavailable"})
    assert headers["Content-Type"] == "application/json"
    assert headers["Error-Code"] == "unavailable"
    assert int(headers["Retry-After"]) >= 1


def documented_block(program):
    """Return the line of docs/operations.md that blocks an address."""
    page = (ROOT / "docs" / "operations.md").read_text("utf-8").partition("### Blocking an address")[2]
    pattern = {
        "nginx": r"echo '(deny 203\.0\.113\.7;)' >> /etc/nginx/conf\.d/",
        "haproxy": r"^ {4}(http-request deny .*)$",
    }
    return re.search(pattern[program], page, re.M)[1]


@pytest.mark.needs("nginx", "haproxy", "openssl")
@pytest.mark.parametrize("program", ["nginx", "haproxy"])
async def test_documented_line_blocks_an_address(launch, place, shared_dsn, program):
    """The proxy refuses the address alone."""
    service = start_service(launch, shared_dsn, place / "http.sock")
    await deferToThread(ready_workers, service)
    line = documented_block(program).replace("203.0.113.7", "127.0.0.7")
    if program == "nginx":
        (place / "conf.d").mkdir()
        (place / "conf.d" / "solisync-blocked.conf").write_text(line)
        proxy = await deferToThread(start_nginx, launch, place, place / "http.sock")
    else:
        (place / "blocked").write_text("127.0.0.7\n")
        line = line.replace("/etc/haproxy/blocked", str(place / "blocked"))
        proxy = await deferToThread(start_haproxy, launch, place, place / "http.sock", line)

    def status(source):
        with closing(proxy.connect(source)) as connection:
            connection.request("GET", "/health", headers={"Host": NAME})
            return connection.getresponse().status

    assert await deferToThread(status, "127.0.0.7") == 403
    assert await deferToThread(status, "127.0.0.8") == 200


@pytest.mark.needs("nginx", "openssl")
async def test_nginx_without_a_free_connection_answers_as_the_service_does(launch, place, shared_dsn):
    """A request takes two of nginx's `worker_connections`; if one is left, the client gets it, and its request none."""
    service = start_service(launch, shared_dsn, place / "http.sock")
    await deferToThread(ready_workers, service)

    def first_refusal(limit):
        directory = place / str(limit)
        directory.mkdir()
        proxy, waiting = start_nginx(launch, directory, place / "http.sock", connections=limit), []
        for _ in range(limit):
            try:
                status, said, headers = proxy.ask("GET", "/health")
            except OSError:  # nginx has no connection for the client
                return None
            if status != 200:
                return status, said, headers["Error-Code"]
            waiting.append(proxy.connect())
            waiting[-1].putrequest("POST", "/api/auth/login")
            waiting[-1].putheader("Content-Length", "10")
            waiting[-1].endheaders()
        return pytest.fail("nginx has no limit")

    refusals = [await deferToThread(first_refusal, limit) for limit in (30, 31)]
    assert (503, {"error": "service unavailable"}, "unavailable") in refusals
    assert all(refusal is None or refusal[0] == 503 for refusal in refusals)


@pytest.mark.limit(4 * PATIENCE)
@pytest.mark.parametrize("program", PROGRAMS)
async def test_proxy_passes_streams_on_and_keeps_them_open(behind, program):
    """Each event arrives immediately, the stream outlasts a minute without events, and its end reaches the client."""
    _, proxy = await behind(program)

    def run():
        player = {"username": "ann", "password": PASSWORD}
        token = proxy.ask("POST", "/api/auth/register", player)[1]["access_token"]
        headers = {"Host": NAME, "Authorization": f"Bearer {token}"}
        stream = proxy.connect()
        stream.request("GET", "/api/events?board=leaderboard", headers=headers)
        response = stream.getresponse()
        assert (response.status, response.getheader("Content-Type")) == (200, "text/event-stream; charset=utf-8")

        def heard(line):
            """Read up to this line."""
            for number, read in enumerate(iter(response.readline, b"")):
                if read == line:
                    return number
            return pytest.fail("the stream has ended")

        heard(b"event: hello\n")
        assert proxy.ask("POST", "/api/leaderboard/opt-in", {"display_name": "Ann"}, headers)[0] == 200
        heard(b"event: board\n")
        for _ in range(3):
            heard(b":\n")
        assert proxy.ask("POST", "/api/leaderboard/opt-in", {"display_name": "Anna"}, headers)[0] == 200
        heard(b"event: board\n")
        assert proxy.ask("DELETE", "/api/sessions", None, headers)[0] == 200
        heard(b"event: end\n")
        assert b"session_ended" in response.read()
        stream.close()

    await deferToThread(run)


@pytest.mark.parametrize("program", PROGRAMS)
async def test_proxy_closes_a_stream_when_its_client_leaves(behind, program):
    service, proxy = await behind(program)

    def run():
        player = {"username": "ann", "password": PASSWORD}
        token = proxy.ask("POST", "/api/auth/register", player)[1]["access_token"]
        stream = proxy.connect()
        stream.request("GET", "/api/events", headers={"Host": NAME, "Authorization": f"Bearer {token}"})
        response = stream.getresponse()
        assert response.readline().startswith(b"retry: ")
        response.close()
        stream.close()
        wait_for(lambda: "/api/events 200" in service.log)  # logged at its end

    await deferToThread(run)


@pytest.mark.needs("nginx", "openssl")
async def test_two_nodes_behind_nginx_share_limits_and_replace_each_other(launch, place, shared_dsn):
    """A client has one limit, and doesn't notice when a node stops."""
    truncate(shared_dsn)
    ports = [free_port(), free_port()]
    nodes = [
        start_service(
            launch,
            shared_dsn,
            place / "unused",
            SOLISYNC_LISTEN=f"tcp:{port}:interface=127.0.0.1",
            SOLISYNC_TRUSTED_PROXIES="127.0.0.1",
        )
        for port in ports
    ]
    for node in nodes:
        await deferToThread(ready_workers, node)
    proxy = await deferToThread(start_nginx, launch, place, ports)

    def run():
        statuses = [proxy.ask("POST", "/api/analytics", {}, source="127.0.0.2")[0] for _ in range(7)]
        assert statuses == [400] * 5 + [429] * 2
        assert nodes[0].stop() == 0
        assert {proxy.ask("GET", "/api/daily-challenge")[0] for _ in range(20)} == {200}
        assert {proxy.ask("POST", "/api/sync/push", b"x" * 20_000)[0] for _ in range(20)} == {401}
        assert nodes[1].stop() == 0
        assert proxy.ask("GET", "/api/health")[:2] == (503, {"error": "service unavailable"})

    await deferToThread(run)
