"""Checks that each port of this machine is free or in use by the service, by listening there for a moment."""

import errno
import http.client
import os
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from twisted.internet.base import ReactorBase
from twisted.internet.defer import maybeDeferred
from twisted.internet.endpoints import (
    SSL4ServerEndpoint,
    TCP4ServerEndpoint,
    TCP6ServerEndpoint,
    UNIXServerEndpoint,
    serverFromString,
)
from twisted.internet.protocol import Factory
from twisted.internet.threads import deferToThreadPool

from .. import __version__
from ..errors import FatalError
from ..process.listening import listen
from ..settings.settings import ServingSettings
from . import Finding, fine, note, wrong

ASK_SECONDS = 3.0
IN_USE = (os.strerror(errno.EADDRINUSE), "Cannot acquire lock")  # the latter for a unix socket


class _Heard(NamedTuple):
    """The beginning of an HTTP answer."""

    code: str | None
    content: bytes


async def players(settings: ServingSettings, reactor: ReactorBase) -> Finding:
    """Check that the port for players is free, or that this version serves there."""
    where = settings.listen
    refusal = await _refusal(where, reactor)
    if refusal is None:
        return fine("port", f"{where} is free")
    if not _in_use(refusal):
        return wrong("port", refusal, "set another --listen")
    version = _version(await _ask(reactor, serverFromString(reactor, where), "/health"))
    if version is None:
        return wrong("port", f"{where} is in use by another program", "stop that, or set another --listen")
    text = f"solisync {version} is running on {where}"
    return fine("port", text) if version == __version__ else note("port", text, f"this is {__version__}: restart it")


async def console(settings: ServingSettings, reactor: ReactorBase) -> list[Finding]:
    """Check that the port of the console is free or serves the console, unless systemd passes it or it is off."""
    where = settings.admin_listen
    if where is None or where.startswith("systemd:"):
        return []
    refusal = await _refusal(where, reactor)
    if refusal is None:
        return [fine("console", f"{where} is free")]
    if not _in_use(refusal):
        return [wrong("console", refusal, "set another --admin-listen")]
    heard = await _ask(reactor, serverFromString(reactor, where), "/api/admin/me")
    if heard is not None and heard.code == "unauthorized":
        return [fine("console", f"it is served on {where}")]
    return [wrong("console", f"{where} is in use by another program", "stop that, or set another --admin-listen")]


async def site(settings: ServingSettings, reactor: ReactorBase) -> list[Finding]:
    """Check that the pages for players are served at the address that links begin with, if one is set."""
    url = settings.site_url
    if url is None:
        return []
    if not settings.pages:
        return [note("site", "SOLISYNC_SITE_URL is set, but the pages are off", "unset it, or SOLISYNC_PAGES")]
    version = _version(await _ask(reactor, url.removeprefix("https://"), "/health"))
    if version is None:
        text = f"no solisync answers at {url}/health, as seen from this machine"
        return [note("site", text, "check SOLISYNC_SITE_URL, unless only other machines reach that address")]
    return [fine("site", f"solisync {version} answers at {url}")]


def _in_use(refusal: str) -> bool:
    return any(reason in refusal for reason in IN_USE)


async def _refusal(where: str, reactor: ReactorBase) -> str | None:
    """Return the reason why listening there is impossible, or None if it is possible."""
    try:
        await maybeDeferred(listen(reactor, where, Factory()).stopListening)
    except FatalError as error:
        return str(error).removeprefix("solisync: ")
    return None


async def _ask(reactor: ReactorBase, where: object, path: str) -> _Heard | None:
    """Return the answer of the program at an endpoint, or of a host over TLS; None if it doesn't speak HTTP."""
    asking: Callable[..., _Heard | None] = _get
    try:
        return await deferToThreadPool(reactor, reactor.getThreadPool(), asking, where, path)
    except (OSError, http.client.HTTPException):
        return None


def _get(endpoint: object, path: str) -> _Heard | None:
    """GET a path at an endpoint, or from a host over TLS; blocks."""
    connection = http.client.HTTPConnection("localhost")
    match endpoint:
        case str():
            connection = http.client.HTTPSConnection(endpoint, timeout=ASK_SECONDS)
        case UNIXServerEndpoint():
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(ASK_SECONDS)
            connection.sock.connect(endpoint._address)
        case TCP4ServerEndpoint() | TCP6ServerEndpoint() | SSL4ServerEndpoint():
            local = "::1" if isinstance(endpoint, TCP6ServerEndpoint) else "127.0.0.1"
            host = endpoint._interface if endpoint._interface not in ("", "0.0.0.0", "::") else local  # noqa: S104
            connection.sock = socket.create_connection((host, endpoint._port), ASK_SECONDS)
            if isinstance(endpoint, SSL4ServerEndpoint):
                trusting = ssl._create_unverified_context()  # noqa: S323  no secret is sent
                connection.sock = trusting.wrap_socket(connection.sock)
        case _:
            return None
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return _Heard(response.getheader("Error-Code"), response.read(1000))
    finally:
        connection.close()


def _version(heard: _Heard | None) -> str | None:
    """The version of the solisync that answered, or None if another program answered."""
    if heard is None:
        return None
    try:
        health = msgspec.json.decode(heard.content)
        return str(health["version"]) if health["status"] == "ok" else None
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, KeyError):
        return None
