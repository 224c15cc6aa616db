"""Access to the console: docs/console.md "Who gets in"."""

import re
from urllib.parse import urlsplit

import pytest
from twisted.internet.threads import deferToThread

from solisync.errors import FatalError, SettingsError
from solisync.rules.browser_sessions import host_of, is_loopback
from solisync.settings.settings import ServingSettings
from solisync.storage.operators import admins
from tests.harness.console import SITE, Console, table
from tests.harness.constants import SECRET
from tests.harness.error_codes import table as players_table
from tests.harness.http_requests import http_client
from tests.harness.service import begin, start
from tests.wire.sockets import exchange, parse

JSON = {"Content-Type": "application/json"}
UUID = "0b8f6f0e-6c53-4d0a-9c3e-2f1d8a7b5c41"
ROUTES = [
    (route.method, re.sub(r"\{\w+\}", UUID, route.path.removeprefix("/api/admin")), route)
    for route in table()
    if route.listed
]


async def test_all_routes_but_sign_in_need_a_session(console, server):
    """Any other request returns 401: without a cookie, with a wrong one, or with the token of a player."""
    ann = await server.player("ann")
    await console.sign_in()
    good = console.cookie
    token = {"Authorization": f"Bearer {ann.tokens.access_token}"}
    for method, path, route in ROUTES:
        if route.path == "/api/admin/session":
            continue
        for cookie, headers in (("none=1", {}), ("solisync-admin=wrong", {}), ("none=1", token), (good, token)):
            answer = await console.ask(method, path, b"{}" if route.body else None, SITE | headers, cookie=cookie)
            assert answer.status == 401, (method, path, cookie, headers)
    assert (await console.ask("GET", "/me", cookie=good)).status == 200


async def test_wrong_cookie_takes_no_database_connection(console, monkeypatch):
    """The process knows which sessions are live."""
    await console.sign_in()
    assert (await console.ask("GET", "/me")).status == 200
    found, find = [], admins.find

    async def finding(statements, secret):
        found.append(secret)
        return await find(statements, secret)

    monkeypatch.setattr(admins, "find", finding)
    for _ in range(10):
        assert (await console.ask("GET", "/me", cookie="solisync-admin=wrong")).status == 401
    assert found == []
    assert (await console.ask("GET", "/me")).status == 200
    assert len(found) == 1


async def test_requests_of_other_origins_return_403(console):
    """The page can't read the answer, and the session doesn't end."""
    await console.sign_in()
    here = f"http://localhost:{console.port}"
    foreign = [
        JSON,
        JSON | {"Sec-Fetch-Site": "same-site"},
        JSON | {"Sec-Fetch-Site": "cross-site", "Origin": here},
        JSON | {"Origin": "http://localhost:8080"},
        JSON | {"Origin": f"http://solisync.localhost:{console.port}"},
        JSON | {"Origin": "https://evil.example"},
        {"Content-Type": "text/plain", "Sec-Fetch-Site": "same-origin"},
        {"Content-Type": "application/x-www-form-urlencoded", "Origin": here},
        {"Sec-Fetch-Site": "same-origin"},
    ]
    for method, path, route in ROUTES:
        if method == "GET":
            answer = await console.ask(method, path, headers={"Sec-Fetch-Site": "cross-site"})
            assert answer.status == 403, path
            continue
        for headers in foreign:
            answer = await console.ask(method, path, b"{}" if route.body else None, headers)
            assert answer.status == 403, (method, path, headers)
            assert "access-control-allow-origin" not in answer.headers
        preflight = {"Origin": "http://localhost:8080", "Access-Control-Request-Method": method}
        answer = await console.ask("OPTIONS", path, headers=preflight)
        assert not {name for name in answer.headers if name.startswith("access-control")}
    await console.get("/me")


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "localhost.", "0.0.0.0", "192.0.2.1", ""])
async def test_foreign_host_is_refused_before_routing(console, host):
    """Unknown paths are refused as well."""
    await console.sign_in()
    for path in ("/me", "/nonsense", "/session"):
        answer = await console.ask("GET", path, host=host or " ")
        assert answer.status in (400, 403), path
    assert (await console.ask("POST", "/session", {}, host=host or " ")).status in (400, 403)


@pytest.mark.parametrize("head", [b"", b"Host: localhost\r\nHost: localhost\r\n", b"Host: evil.example\r\n"])
async def test_missing_double_and_conflicting_hosts_are_refused(console, head):
    target = b"http://localhost/api/admin/me" if b"evil" in head else b"/api/admin/me"
    request = b"GET %b HTTP/1.1\r\n%bConnection: close\r\n\r\n" % (target, head)
    (answer,) = parse(await deferToThread(exchange, console.port, request))
    assert answer.status in (400, 403)


async def test_absolute_target_is_refused(console):
    """The host of the target would replace the one in the header."""
    request = b"GET http://evil.example/api/admin/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    (answer,) = parse(await deferToThread(exchange, console.port, request))
    assert answer.status == 403


def test_loopback_has_few_names():
    """DNS decides none of them."""
    for host in ("localhost", "solisync.localhost", "127.0.0.1", "127.9.9.9", "::1"):
        assert is_loopback(host)
    for host in ("localhost.", "evil.localhost", "127.0.0.1.evil.example", "0", "::", "10.0.0.1", ""):
        assert not is_loopback(host)
    assert host_of(["LOCALHOST:80"]) == "localhost"
    assert host_of(["[::1]:80"]) == "::1"
    for lines in ([], ["a", "a"], ["[::1"], ["a:b"], ["[::1]x"]):
        assert host_of(lines) is None


async def test_neither_listener_has_routes_of_the_other(console, server):
    """The players' listener returns 404 for the console's routes, even with the cookie."""
    await console.sign_in()
    for method, path, _ in ROUTES:
        answer = await server.ask(method, f"/api/admin{path}", {"Cookie": console.cookie})
        assert answer.status == 404, path
    admins = {(route.method, route.path) for route in table() if route.listed}
    for route in players_table():
        assert (route.method, route.path) not in admins
    for path in ("/../me", "/../health", "/../../play"):
        assert (await console.ask("GET", path)).status == 404


@pytest.mark.parametrize("listen", ["tcp:8081", "ssl:8081:interface=127.0.0.1", "tcp6:8081", "nonsense"])
def test_console_endpoint_needs_an_interface(listen):
    """An endpoint of another kind is a wrong setting, too."""
    with pytest.raises(SettingsError, match="SOLISYNC_ADMIN_LISTEN"):
        ServingSettings.from_environ({"JWT_SECRET": SECRET, "SOLISYNC_ADMIN_LISTEN": listen})


async def test_console_on_every_address_needs_host_names(reactor, shared_dsn):
    """The service doesn't start without them."""
    with pytest.raises(FatalError, match="other machines reach"):
        begin(reactor, shared_dsn, settings={"SOLISYNC_ADMIN_LISTEN": "tcp:0:interface=0.0.0.0"})


async def test_console_with_host_names_needs_https(reactor, server, administrate):
    """Plain HTTP and loopback are refused, and the cookie is Secure."""
    settings = {"SOLISYNC_ADMIN_LISTEN": "tcp:0:interface=127.0.0.1", "SOLISYNC_ADMIN_HOSTS": "admin.example"}
    running = await start(reactor, server.dsn, settings=settings)
    try:
        console = Console(running.service.admin_address.port, administrate, host="admin.example")
        await administrate("admins", "add", "ann")
        code = (await administrate("admins", "code", "ann", "--json")).json["code"]
        body, port = {"name": "ann", "code": code}, console.port
        for origin, host in (
            (f"http://admin.example:{port}", "admin.example"),
            (f"https://localhost:{port}", "localhost"),
            (None, "admin.example"),
        ):
            headers = SITE | ({"Origin": origin} if origin else {})
            assert (await console.ask("POST", "/session", body, headers, host=f"{host}:{port}")).status == 403
        answer = await console.ask("POST", "/session", body, SITE | {"Origin": f"https://admin.example:{port}"})
        assert answer.status == 200
        pair, *attributes = answer.headers["set-cookie"].split("; ")
        assert pair.startswith("__Host-solisync-admin=")
        assert "Secure" in attributes
        assert (await console.ask("GET", "/me", cookie=pair)).status == 200
        assert (await console.ask("GET", "/me", cookie=pair.removeprefix("__Host-"))).status == 401
    finally:
        await running.service.stopService()


@pytest.mark.parametrize("path", ["/", "/players", f"/players/{UUID}", "/review", "/acts", "/service", "/web/page.js"])
async def test_pages_are_served_to_their_host_only(console, path):
    """The pages have the policy of the players' pages, and other origins can't embed them."""
    url = f"http://127.0.0.1:{console.port}{path}"
    answer = await http_client(keep=False).get(url, headers={"Host": "localhost"})
    assert answer.code == 200
    assert answer.headers.getRawHeaders("cross-origin-resource-policy") == ["same-origin"]
    if "." not in path:
        (policy,) = answer.headers.getRawHeaders("content-security-policy")
        assert {"trusted-types 'none'", "frame-ancestors 'none'"} <= {part.strip() for part in policy.split(";")}
    await answer.content()
    assert (await http_client(keep=False).get(url, headers={"Host": "evil.example"})).code == 403


async def test_openapi_document_covers_the_console_only(console):
    """The document has every route, the cookie and all tags."""
    await console.sign_in()
    document = await console.get("/openapi.json")
    assert {(method.upper(), path) for path, item in document["paths"].items() for method in item} == {
        (route.method, route.path) for route in table() if route.listed
    }
    assert {tag["name"] for tag in document["tags"]} == {route.tag for route in table() if route.listed}
    assert urlsplit(document["servers"][0]["url"]).netloc == ""
