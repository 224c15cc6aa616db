"""The console of a service under test, called as its pages call it."""

import functools
import itertools

import msgspec

from solisync.errors import STATUS
from solisync.web.console.acts import Acts
from solisync.web.console.app import console_routes
from solisync.web.console.inspections import Inspections
from solisync.web.console.overviews import Overviews
from solisync.web.console.players import PlayerViews
from solisync.web.console.replays import ReplayViews
from solisync.web.console.signing_in import SigningIn
from tests.harness.error_codes import WITHOUT_ROUTE, find_route
from tests.harness.http_requests import Answer, http_client, new_address

_numbers = itertools.count(1)
SITE = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}


@functools.cache
def table():
    """The console's routes, over resources without any parts."""
    resources = SigningIn, PlayerViews, ReplayViews, Overviews, Inspections, Acts
    return console_routes([object.__new__(resource) for resource in resources], settings=None)


def new_admin():
    """An unused admin name, because the service counts each admin's sensitive acts for ten minutes."""
    return f"admin{next(_numbers)}"


class Console:
    """The console at a local port; `cookie` has the session's cookie after signing in."""

    def __init__(self, port, administrate, host="localhost"):
        self.port = port
        self.host = host
        self.cookie = None
        self.address = new_address()
        self._administrate = administrate

    async def sign_in(self, name="ann"):
        """Add the admin if necessary, and begin a session."""
        answer = await self.ask("POST", "/session", {"name": name, "code": await self.new_code(name)})
        assert answer.status == 200, answer
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return self

    async def new_code(self, name="ann"):
        """Make a code for this admin, who is added if necessary."""
        await self._administrate("admins", "add", name)
        return (await self._administrate("admins", "code", name, "--json")).json["code"]

    async def ask(self, method, path, body=None, headers=SITE, *, cookie=None, host=None):
        """Send a request, with the session's cookie unless another is given."""
        cookie = self.cookie if cookie is None else cookie
        sent = {
            "Host": host or f"{self.host}:{self.port}",
            "X-Forwarded-For": self.address,
            **headers,
            **({"Cookie": cookie} if cookie else {}),
        }
        url = f"http://127.0.0.1:{self.port}/api/admin{path}"
        data = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        response = await http_client(keep=False).request(method, url, headers=sent, data=data)
        fields = {name.decode().lower(): values[0].decode() for name, values in response.headers.getAllRawHeaders()}
        answer = Answer(response.code, fields, await response.content())
        _check_error_code(answer, method, f"/api/admin{path}")
        return answer

    async def get(self, path):
        """Return the JSON of a GET that must succeed."""
        answer = await self.ask("GET", path)
        assert answer.status == 200, (path, answer)
        return answer.json


def _check_error_code(answer, method, path):
    code = answer.headers.get("error-code")
    assert (code is None) == (answer.status < 400)
    if code is not None:
        assert STATUS[code] == answer.status
        route = find_route(table(), method, path)
        assert code in ({*WITHOUT_ROUTE, "forbidden"} if route is None else {*route.codes, "forbidden"}), (path, code)
