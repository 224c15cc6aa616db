"""Checks that each port of this machine is free or in use by the service, by connecting to it: nothing is bound."""

import errno
import http.client
import os
import socket
import ssl
import stat
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from twisted.internet.base import ReactorBase
from twisted.internet.endpoints import (
    SSL4ServerEndpoint,
    TCP4ServerEndpoint,
    TCP6ServerEndpoint,
    UNIXServerEndpoint,
    serverFromString,
)
from twisted.internet.threads import deferToThreadPool

from .. import __version__
from ..embedded.data_directory import DataDirectory
from ..settings.settings import ServingSettings
from . import Finding, fine, note, wrong

ASK_SECONDS = 3.0

_CHECKED = (UNIXServerEndpoint, TCP4ServerEndpoint, TCP6ServerEndpoint, SSL4ServerEndpoint)
_LOCAL = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


class _Heard(NamedTuple):
    """The beginning of an HTTP answer; no `content` from a program that doesn't speak HTTP."""

    code: str | None = None
    content: bytes = b""


async def players(settings: ServingSettings, reactor: ReactorBase) -> Finding:
    """Check that the port for players is free, or that this version serves there."""
    where = settings.listen
    if not isinstance(serverFromString(reactor, where), _CHECKED):
        return note("port", f"not checked, because {where} is not one of tcp:, ssl: and unix:")
    try:
        heard = await _ask(reactor, where, "/health")
    except OSError as error:
        return wrong("port", f"can't listen on {where}: {error.strerror or error}", "set another --listen")
    if heard is None and settings.database_url is None and DataDirectory(settings.data_dir).is_in_use():
        text = f"{where} is free, but a service uses {settings.data_dir}, and serves elsewhere"
        return note("port", text, "name its port or socket, as in SOLISYNC_LISTEN=unix:/run/… solisync doctor")
    if heard is None:
        return fine("port", f"{where} is free")
    version = _version(heard)
    if version is None:
        return wrong("port", f"{where} is in use by another program", "stop that, or set another --listen")
    text = f"solisync {version} is running on {where}"
    return fine("port", text) if version == __version__ else note("port", text, f"this is {__version__}: restart it")


async def console(settings: ServingSettings, reactor: ReactorBase) -> list[Finding]:
    """Check that the port of the console is free or serves the console, unless systemd passes it or it is off."""
    where = settings.admin_listen
    if where is None or where.startswith("systemd:"):
        return []
    try:
        heard = await _ask(reactor, where, "/api/admin/me")
    except OSError as error:
        text = f"can't listen on {where}: {error.strerror or error}"
        return [wrong("console", text, "set another --admin-listen")]
    if heard is None:
        return [fine("console", f"{where} is free")]
    if heard.code == "unauthorized":
        return [fine("console", f"it is served on {where}")]
    return [wrong("console", f"{where} is in use by another program", "stop that, or set another --admin-listen")]


async def site(settings: ServingSettings, reactor: ReactorBase) -> list[Finding]:
    """Check that the pages for players are served at the address that links begin with, if one is set."""
    url = settings.site_url
    if url is None:
        return []
    if not settings.pages:
        return [note("site", "SOLISYNC_SITE_URL is set, but the pages are off", "unset it, or SOLISYNC_PAGES")]
    connection = http.client.HTTPSConnection(url.removeprefix("https://"), timeout=ASK_SECONDS)
    version = _version(await deferToThreadPool(reactor, reactor.getThreadPool(), _get, connection, "/health"))
    if version is None:
        text = f"no solisync answers at {url}/health, as seen from this machine"
        return [note("site", text, "check SOLISYNC_SITE_URL, unless only other machines reach that address")]
    return [fine("site", f"solisync {version} answers at {url}")]


async def _ask(reactor: ReactorBase, where: str, path: str) -> _Heard | None:
    """Return the answer of the program that listens at an endpoint, or None if no program does.

    Raises OSError if no program could listen there.
    """
    endpoint = serverFromString(reactor, where)
    return await deferToThreadPool(reactor, reactor.getThreadPool(), _ask_blocking, endpoint, path)


def _ask_blocking(endpoint: Any, path: str) -> _Heard | None:
    connection = http.client.HTTPConnection("localhost")
    try:
        if isinstance(endpoint, UNIXServerEndpoint):
            connection.sock = _connect_to_file(endpoint._address)
        else:
            every = "::" if isinstance(endpoint, TCP6ServerEndpoint) else "0.0.0.0"  # noqa: S104
            connection.sock = _connect_to_port(endpoint._interface or every, endpoint._port)
    except (TimeoutError, BlockingIOError):  # more connections wait there than the program accepts
        return _Heard()
    if connection.sock is None:
        return None
    return _get(connection, path, encrypted=isinstance(endpoint, SSL4ServerEndpoint))


def _connect_to_file(path: str) -> socket.socket | None:
    """Connect to a unix socket; None if there is none, or only one that an ended program has left."""
    directory = os.path.dirname(path) or "."
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ASK_SECONDS)
    try:
        connection.connect(path)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        connection.close()
        if os.path.exists(path) and not stat.S_ISSOCK(os.stat(path).st_mode):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        if not os.path.isdir(directory):
            raise
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from error
        return None
    return connection


def _connect_to_port(host: str, port: int) -> socket.socket | None:
    """Connect to a port at an address of this machine; None if no program listens there."""
    _check_address(host, port)
    try:
        return socket.create_connection((_LOCAL.get(host, host), port), ASK_SECONDS)
    except ConnectionRefusedError:
        if 0 < port < _first_free_to_all() and os.geteuid() != 0:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None
        return None


def _check_address(host: str, port: int) -> None:
    """Raise OSError unless it is an address of this machine: then packets to it would have it as their source too."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    if ip_address(address[0]).is_loopback or ip_address(address[0]).is_unspecified:
        return
    with socket.socket(family, socket.SOCK_DGRAM) as unsent, suppress(OSError):
        unsent.connect(address)  # which sends nothing
        if unsent.getsockname()[0] == address[0]:
            return
    raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))


def _first_free_to_all() -> int:
    """The first port on which a program without rights may listen."""
    with suppress(OSError):
        return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text("ascii"))
    return 1024


def _get(connection: http.client.HTTPConnection, path: str, *, encrypted: bool = False) -> _Heard:
    """GET a path on a connection; blocks."""
    try:
        if encrypted:
            trusting = ssl._create_unverified_context()  # noqa: S323  no secret is sent
            connection.sock = trusting.wrap_socket(connection.sock)
        connection.request("GET", path)
        response = connection.getresponse()
        return _Heard(response.getheader("Error-Code"), response.read(1000))
    except (OSError, http.client.HTTPException):
        return _Heard()
    finally:
        connection.close()


def _version(heard: _Heard) -> str | None:
    """The version of the solisync that answered, or None if another program answered."""
    try:
        health = msgspec.json.decode(heard.content)
        return str(health["version"]) if health["status"] == "ok" else None
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, KeyError):
        return None
