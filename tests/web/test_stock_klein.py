"""The app's klein on a site of Twisted, without the service's own server: docs/decisions.md "Shape"."""

import re
from types import SimpleNamespace

import pytest
import pytest_twisted
from msgspec.json import decode
from twisted.internet.defer import maybeDeferred
from twisted.web.server import Request, Site

from solisync.web.wire.body import Body
from solisync.web.wire.reply import NO_STORE
from solisync.web.wire.request import Request as OwnRequest
from tests.harness.error_codes import table
from tests.harness.http_requests import http_client
from tests.harness.payloads import replay

OWN = {"connection", "content-length", "content-type", "date", "keep-alive", "server", "transfer-encoding", "vary"}


class StockRequest(Request):
    """Twisted's request, with what the app reads from its own."""

    route = claims = admin = allowed_origin = refusal = None
    shared, token_read, request_id = True, False, "stock"
    caller = SimpleNamespace(name="127.0.0.1", bucket="127.0.0.1")
    has_compressed_body = OwnRequest.has_compressed_body
    bearer, field, fields, values = OwnRequest.bearer, OwnRequest.field, OwnRequest.fields, OwnRequest.values
    check_query, query, _parameters = OwnRequest.check_query, OwnRequest.query, None
    _query_text, _read_query = OwnRequest._query_text, OwnRequest._read_query

    @property
    def given(self):
        return {name.lower(): values for name, values in self.requestHeaders.getAllRawHeaders()}

    @property
    def body(self):
        body = Body()
        body.add(self.content.getvalue())
        return body

    def send(self, reply):
        """Write the head and the body; klein then ends the request."""
        self.setResponseCode(reply.status)
        private = self.route is not None and self.route.private
        headers = {"X-Content-Type-Options": "nosniff", **(NO_STORE if private else {}), **reply.headers}
        for name, value in headers.items():
            self.setHeader(name, value)
        if reply.content_type is not None:
            self.setHeader("Content-Type", reply.content_type)
        self.write(reply.body)


@pytest.fixture
def mounted(server, reactor, monkeypatch):
    """The port of a site of Twisted that serves klein's own resource."""
    app = server.service.site.resource
    reply_of = app._reply

    async def reply(request, route, variables):
        if not isinstance(request, StockRequest):
            return await reply_of(request, route, variables)
        app.admit(request, len(request.content.getvalue()))
        made = await reply_of(request, route, variables)
        request.send(made)
        if made.stream is not None:
            made.stream.begin(SimpleNamespace(full=False, write=request.write, end=request.write))
            made.stream.lost(unread=False)
        if made.pieces is not None and request.method != b"HEAD":
            async for piece in made.pieces:
                request.write(piece)
        return None

    monkeypatch.setattr(app, "_reply", reply)
    port = reactor.listenTCP(0, Site(app.klein.resource(), requestFactory=StockRequest), interface="127.0.0.1")
    yield port.getHost().port
    pytest_twisted.blockon(maybeDeferred(port.stopListening))


async def ask(port, method, path, *, token=None, body=None):
    """Return status, headers but those that each server sets, and body."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"http://127.0.0.1:{port}{path}"
    response = await http_client(keep=False).request(method, url, headers=headers, data=body)
    fields = {name.decode().lower(): values for name, values in response.headers.getAllRawHeaders()}
    shown = {name: values for name, values in fields.items() if name not in OWN | {"x-request-id"}}
    content = re.sub(rb'"(exported_at|server_time|last_modified)":"[^"]*"', rb'"\1":"now"', await response.content())
    return response.code, fields.get("content-type"), shown, content


async def test_stock_mount_gives_the_answers_of_the_service(server, mounted):
    """The status, the headers of the app and the body of each GET are the same; of a stream, its first event."""
    ann = await server.player("ann")
    me, token = await ann.me(), ann.tokens.access_token
    stored = await ann.upload_replay(replay())
    given = {"user_id": me.id, "username": "ann", "name": "ann", "replay_id": stored, "id": stored}
    different, compared = [], 0
    for route in (route for route in table() if route.method == "GET"):
        path = route.path.format_map({**dict.fromkeys(route.variables, "2026-11-28"), **given})
        if route.name == "events":
            status, _, _, content = await ask(mounted, "GET", path, token=token)
            assert (status, b"event: hello" in content) == (200, True)
            continue
        ours = await ask(server.port, "GET", path, token=token)
        theirs = await ask(mounted, "GET", path, token=token)
        if ours != theirs:
            different.append((path, ours, theirs))
            print(path, ours, theirs, sep="\n")
        compared += 1
    assert different == []
    assert compared > 40


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/auth/login", b'{"username": "ann", "password": "wrong horse"}'),
        ("POST", "/api/auth/login", b"{"),
        ("POST", "/api/sync/push", b"{}"),
        ("PUT", "/health", None),
        ("GET", "/nope", None),
        ("GET", "/api/me?a=1&" + "b=2&" * 30, None),
    ],
)
async def test_stock_mount_gives_the_errors_of_the_service(server, mounted, method, path, body):
    """Klein's error handlers make the same errors."""
    token = (await server.player("ann")).tokens.access_token
    assert await ask(mounted, method, path, token=token, body=body) == await ask(
        server.port, method, path, token=token, body=body
    )


async def test_stock_mount_serves_a_player(server, mounted):
    """A player registers, pushes nothing new, and sees the account."""
    status, _, _, content = await ask(
        mounted, "POST", "/api/auth/register", body=b'{"username": "eve", "password": "correct horse"}'
    )
    assert status == 200
    token = decode(content)["access_token"]
    status, _, _, content = await ask(mounted, "GET", "/api/me", token=token)
    assert (status, decode(content)["username"]) == (200, "eve")
