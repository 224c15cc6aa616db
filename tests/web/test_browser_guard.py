"""The guard of browser sessions, and the only routes that read their cookie (docs/security.md "Logins of browsers")."""

import re

import pytest

from solisync.client import Client
from tests.harness.constants import PASSWORD
from tests.harness.error_codes import table
from tests.harness.http_requests import http_client, new_address
from tests.harness.service import refused, start
from tests.web.browser import CHANGE, LOGIN, PATHS, REFRESH, ROUTES, SITE, registered


def variants(port):
    """Return headers, and whether a request with them comes from a page of this service."""
    here, there = f"http://127.0.0.1:{port}", "https://evil.example"
    json = {"Content-Type": "application/json"}
    site = {"Sec-Fetch-Site": "same-origin"}
    yield from (
        (json | site, True),
        (json | {"Origin": here}, True),
        (json | {"Origin": here.replace("http:", "https:")}, True),
        (json | {"Origin": here} | site, True),
        (json | {"Origin": there, "Host": "evil.example"}, True),  # a page of that name, whatever its address
        (json | {"Origin": "https://a.example", "Host": "a.example:443"}, True),
        ({"Content-Type": "application/json; charset=utf-8"} | site, True),
        (json | site | {"X-Forwarded-Host": "evil.example", "Referer": there}, True),
        ({}, False),
        (json, False),
        (site, False),
        ({"Origin": here} | site, False),
        (json | {"Origin": there}, False),
        (json | {"Origin": there} | site, False),
        (json | {"Origin": "null"}, False),
        (json | {"Origin": "null"} | site, False),
        (json | {"Origin": ""} | site, False),
        (json | {"Origin": f"http://127.0.0.1:{port + 1}"}, False),
        (json | {"Origin": "http://127.0.0.1"}, False),
        (json | {"Origin": f"http://localhost:{port}"}, False),
        (json | {"Origin": f"{here}.evil.example"}, False),
        (json | {"Origin": f"{here}@evil.example"}, False),
        (json | {"Origin": f"ftp://127.0.0.1:{port}"}, False),
        (json | {"Origin": there, "X-Forwarded-Host": "evil.example"}, False),
        (json | {"Origin": here, "Sec-Fetch-Site": "same-site"}, False),
        (json | {"Origin": here, "Sec-Fetch-Site": "cross-site"}, False),
        (json | {"Origin": here, "Sec-Fetch-Site": "none"}, False),
        (json | {"Sec-Fetch-Site": "none"}, False),
        (json | {"Sec-Fetch-Site": "Same-Origin"}, False),
        (json | {"Referer": here}, False),
        ({"Content-Type": "text/plain"} | site, False),
        ({"Content-Type": "text/plain;application/json"} | site, False),
        ({"Content-Type": "application/x-www-form-urlencoded"} | site, False),
        ({"Content-Type": "multipart/form-data; boundary=x"} | site | {"Origin": here}, False),
    )


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_only_pages_of_this_service_pass_the_guard(server, method, path):
    """Other requests get a 403, which sets no cookie, ends no session and counts towards no limit."""
    browser = await registered(server)
    address = new_address()
    passed, stopped = 0, 0
    for headers, through in variants(server.port):
        cookies = {"Cookie": f"solisync={browser.token}; __Host-solisync={browser.token}"}
        answer = await server.ask(method, path, headers | ({} if through else cookies), b"{", address=address)
        if through:
            passed += 1
            assert answer.status != 403, headers
        else:
            stopped += 1
            assert (answer.status, answer.json) == (403, {"error": "forbidden"}), headers
            assert answer.headers["error-code"] == "forbidden"
            assert answer.headers["cache-control"] == "no-store"
            assert "set-cookie" not in answer.headers
    assert (passed, stopped) == (8, 26)
    counted = server.sql("SELECT cardinality(hits) FROM rate_limits WHERE bucket = %s", (f"auth:{address}",))
    assert counted == ([(passed,)] if (method, path) in (LOGIN, REFRESH) else [])
    assert (await browser.refresh()).status == 200


async def test_size_is_checked_before_the_guard_and_the_guard_before_the_rest(server):
    """The order is size, guard, limit, body, credentials; each failure hides those after it."""
    address = new_address()
    foreign = {"Content-Type": "text/plain", "Origin": "https://evil.example"}
    huge, broken = b"x" * 1_048_577, b"{"
    for method, path in ROUTES:
        assert (await server.ask(method, path, foreign, huge, address=address)).status == 413
        assert (await server.ask(method, path, foreign, broken, address=address)).status == 403
        assert (await server.ask(method, path, SITE, huge, address=address)).status == 413
    for _ in range(10):
        assert (await server.ask(*LOGIN, SITE, broken, address=address)).status == 400
    assert (await server.ask(*LOGIN, SITE, broken, address=address)).status == 429
    assert (await server.ask(*REFRESH, SITE, address=address)).status == 429
    assert (await server.ask(*LOGIN, foreign, broken, address=address)).status == 403
    assert (await server.ask(*REFRESH, foreign, address=address)).status == 403
    client = await server.player()
    token = client.tokens.access_token
    assert (await server.ask(*CHANGE, foreign, broken)).status == 403
    assert (await server.ask(*CHANGE, SITE, broken)).status == 401
    for _ in range(5):
        assert (await server.ask(*CHANGE, SITE, broken, bearer=token)).status == 400
    assert (await server.ask(*CHANGE, SITE, broken, bearer=token)).status == 429
    assert (await server.ask(*CHANGE, foreign, broken, bearer=token)).status == 403


async def test_doubled_header_is_refused(server):
    """No browser sends these headers twice. A cookie in two lines counts as absent."""
    browser = await registered(server)
    for name, values in (
        ("Sec-Fetch-Site", ["same-origin", "same-origin"]),
        ("Content-Type", ["application/json", "application/json"]),
        ("Origin", [f"http://127.0.0.1:{server.port}"] * 2),
    ):
        assert await status_of(server, {**SITE, name: values}) == 403
    pair = f"solisync={browser.token}"
    assert await status_of(server, SITE | {"Cookie": [pair, pair]}) == 401
    assert await status_of(server, SITE | {"Cookie": f"{pair}; {pair}"}) == 401
    assert await status_of(server, SITE | {"Cookie": ["a=b", pair]}) == 200


async def status_of(server, headers):
    """Return the status of a refresh with several lines of a header."""
    http = http_client(keep=server.keeps_connections)
    response = await http.request("POST", server.url + REFRESH[1], headers=headers | {"X-Forwarded-For": new_address()})
    await response.content()
    return response.code


async def test_https_pages_use_only_the_https_cookie(server):
    """Another host of the domain may set the plain cookie, so the service reads that one over plain HTTP alone."""
    browser = await registered(server, https=True)
    both = {"Cookie": f"solisync=x; __Host-solisync={browser.token}"}
    origin = f"//127.0.0.1:{server.port}"
    answer = await server.ask(*REFRESH, SITE | both | {"Origin": f"http:{origin}"})
    assert (answer.status, answer.headers["set-cookie"].partition("=")[0]) == (401, "solisync")
    answer = await server.ask(*REFRESH, SITE | both)
    assert answer.status == 401
    answer = await server.ask(*REFRESH, SITE | both | {"Origin": f"https:{origin}"})
    assert (answer.status, answer.headers["set-cookie"].partition("=")[0]) == (200, "__Host-solisync")


async def test_other_routes_ignore_the_cookie(server):
    """No other route accepts the cookie as a token, sets a cookie, or changes its reply because of one."""
    browser = await registered(server)
    cookies = SITE | {"Cookie": f"solisync={browser.token}; __Host-solisync={browser.token}"}
    for route in table():
        path = re.sub(r"\{\w+\}", "x", route.path)
        if (route.method, path) in ROUTES:
            continue
        plain = await server.ask(route.method, path, SITE, b"{}" if route.body else None)
        answer = await server.ask(route.method, path, cookies, b"{}" if route.body else None)
        assert "set-cookie" not in answer.headers
        assert answer.status == plain.status, path
        if route.protected:
            assert answer.status == 401
    assert (await browser.refresh()).status == 200


@pytest.mark.parametrize("path", PATHS)
async def test_get_changes_nothing(server, path):
    """The request has everything that a page would send."""
    browser = await registered(server)
    headers = SITE | {"Cookie": f"solisync={browser.token}"}
    for method in ("GET", "HEAD", "PATCH"):
        answer = await server.ask(method, path, headers)
        assert answer.status == 405
        assert "set-cookie" not in answer.headers
    assert (await browser.refresh()).status == 200


async def test_other_origins_can_not_use_browser_sessions(reactor, shared_dsn):
    """Origins allowed by CORS get no preflight and can't read replies either."""
    origin = "https://game.example"
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_CORS_ORIGINS": origin})
    try:
        for path in (*PATHS, "/", "/replays/x", "/web/home.js"):
            for method, body in (("OPTIONS", None), ("POST", b"{}"), ("POST", b"x" * 1_048_577), ("GET", None)):
                headers = {
                    "Origin": origin,
                    "Access-Control-Request-Method": "POST",
                    "Content-Type": "application/json",
                }
                answer = await running.ask(method, path, headers, body)
                assert not [name for name in answer.headers if name.startswith("access-control")], (method, path)
                assert "Origin" not in answer.headers.get("vary", ""), (method, path)
                assert method != "OPTIONS" or answer.status == 405
        answer = await running.ask("OPTIONS", "/api/sessions", headers)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (204, origin)
    finally:
        await running.service.stopService()


async def test_client_class_can_act_as_a_page(server):
    """A check can find out whether a page could log in. The login fails if the service sees another host."""
    client = await server.player()
    before = client.tokens
    session = await client.browser_login("ann", PASSWORD)
    assert session.username == "ann"
    assert (await server.ask("GET", "/api/me", bearer=session.access_token)).status == 200
    assert client.tokens == before
    behind = Client(server.url, http=http_client(keep=server.keeps_connections), headers={"Host": "backend"})
    assert await refused(behind.browser_login("ann", PASSWORD)) == (403, "forbidden")
