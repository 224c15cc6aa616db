"""Requests of devices, as the proxy reads and forwards them, and the tokens in the answers."""

import asyncio
import contextlib
import json
from dataclasses import dataclass

ROUTES = {
    "register": "POST /api/auth/register",
    "login": "POST /api/auth/login",
    "guest": "POST /api/auth/guest",
    "refresh": "POST /api/auth/refresh",
    "logout": "POST /api/auth/logout",
    "claim": "POST /api/me/claim",
    "join": "POST /api/me/join",
    "me": "GET /api/me",
    "pull": "GET /api/sync/pull",
    "push": "POST /api/sync/push",
    "games": "POST /api/games",
    "upload": "POST /api/replays",
    "events": "GET /api/events",
}
GROUPS = {"progress": ("games", "pull", "push")}  # routes by another name, for faults
BEGINNINGS = ("register", "login", "guest")  # these begin a session
ISSUING = (*BEGINNINGS, "refresh")  # their answers have new tokens


@dataclass
class Request:
    """A request of the device."""

    line: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def route(self) -> str:
        """The name of the route in ROUTES, or the method and the path."""
        method, target, _ = self.line.split(" ")
        asked = f"{method} {target.partition('?')[0]}"
        return next((name for name, route in ROUTES.items() if route == asked), asked)

    def encode(self) -> bytes:
        """The bytes to forward; the service closes the connection after its answer."""
        kept = {name: text for name, text in self.headers.items() if name not in ("connection", "transfer-encoding")}
        kept |= {"connection": "close", "content-length": str(len(self.body))}
        lines = [self.line, *(f"{name}: {text}" for name, text in kept.items())]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + self.body


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Read a request with a body of known length or in chunks."""
    line, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    headers = {name.lower(): text.strip() for name, _, text in (each.partition(":") for each in fields)}
    body = b""
    if "chunked" in headers.get("transfer-encoding", ""):
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(line, headers, body)


def issued_token(answer: bytes) -> str | None:
    """Return the access token in a whole answer; None if there is none."""
    with contextlib.suppress(ValueError, KeyError):
        return str(json.loads(answer.partition(b"\r\n\r\n")[2])["access_token"])
    return None
