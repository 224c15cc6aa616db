"""A browser with a page of the service in it (docs/protocol.md "Sessions of browsers")."""

from tests.harness.constants import PASSWORD
from tests.harness.http_requests import new_address

SITE = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
NAME = {False: "solisync", True: "__Host-solisync"}
LOGIN, REFRESH, CHANGE = ("POST", "/api/session"), ("POST", "/api/session/refresh"), ("PUT", "/api/session/password")
END = ("DELETE", "/api/session")
ROUTES = (LOGIN, REFRESH, CHANGE, END)
PATHS = sorted({path for _, path in ROUTES})


class Browser:
    """A browser with a page of the service. It keeps one cookie, as the service sets and clears it."""

    def __init__(self, server, *, https=False, address=None):
        self.server = server
        self.address = address or new_address()
        self.token = None
        self.access_token = None
        self._name = NAME[https]
        self._headers = SITE | ({"Origin": f"https://127.0.0.1:{server.port}"} if https else {})

    async def ask(self, method, path, body=None, **more):
        """Send a request of the page, with the cookie."""
        headers = self._headers | ({"Cookie": f"{self._name}={self.token}"} if self.token is not None else {})
        answer = await self.server.ask(method, path, headers, body, address=self.address, **more)
        assert answer.headers["cache-control"] == "no-store"
        self._keep(answer)
        return answer

    def _keep(self, answer):
        if "set-cookie" in answer.headers:
            pair, lifetime, *rest = answer.headers["set-cookie"].split("; ")
            secure = ["Secure"] if self._name.startswith("__Host-") else []
            assert rest == ["Path=/", *secure, "HttpOnly", "SameSite=Strict"]
            name, _, value = pair.partition("=")
            assert name == self._name
            assert lifetime == ("Max-Age=2592000" if value else "Max-Age=0")
            self.token = value or None
        if answer.status == 200 and answer.json != {"ok": True}:
            assert list(answer.json)[:2] == ["access_token", "username"]
            self.access_token = answer.json["access_token"]

    async def begin(self, username="ann", password=PASSWORD, **more):
        return await self.ask(*LOGIN, {"username": username, "password": password, **more})

    async def refresh(self, body=None):
        return await self.ask(*REFRESH, body)

    async def change(self, current, new):
        body = {"current_password": current, "new_password": new}
        return await self.ask(*CHANGE, body, bearer=self.access_token)

    async def end(self):
        return await self.ask(*END)


async def registered(server, username="ann", **more):
    """Return a browser with the session of a new player."""
    browser = Browser(server, **more)
    answer = await browser.begin(username, register=True)
    assert answer.status == 200
    return browser


def sessions(server):
    """Return the number of sessions in the database."""
    ((count,),) = server.sql("SELECT count(*) FROM refresh_tokens")
    return count
