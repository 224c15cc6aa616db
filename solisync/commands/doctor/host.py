"""The checks of `solisync doctor` without the database: variables, secret, port, disk, proxies."""

import errno
import http.client
import math
import os
import socket
import ssl
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

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

from ... import __version__
from ...access.rate_limit import AUTH
from ...errors import FatalError
from ...process.listening import listen
from ...settings.misspelt import unknown_variables
from ...settings.settings import ServingSettings
from .findings import Finding, fine, note, wrong

SECRET_BITS = 100  # below that, a secret looks like words or a pattern
ASK_SECONDS = 3.0
IN_USE = (os.strerror(errno.EADDRINUSE), "Cannot acquire lock")  # the latter for a unix socket
EVERYBODY = 1  # a network with a prefix of this length, or less, holds half of all addresses, or more


def names(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check for variables that begin like settings and are none."""
    for name, advice in unknown_variables(environ):
        yield wrong("settings", f"{name} is not a setting", advice)


def secret(name: str, value: bytes) -> Finding:
    """Check whether a secret that tokens are verified with looks random, by the entropy of its bytes."""
    counts = Counter(value).values()
    bits = -sum(count * math.log2(count / len(value)) for count in counts)
    if bits < SECRET_BITS:
        return wrong(
            "secret",
            f"{name} repeats itself: anybody who guesses it can log in as any player",
            "take the output of: openssl rand -hex 32 (it logs everybody out)",
        )
    return fine("secret", f"{name} has {len(value)} bytes")


def secret_file(file: Path) -> Iterator[Finding]:
    """Check that not everybody may read the file with the secret."""
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return  # reported with the settings
    if mode & 0o004:
        yield wrong("secret", f"everybody on this machine may read {file}", f"chmod o-r {file}")


def proxies(settings: ServingSettings) -> Iterator[Finding]:
    """Check that the trusted proxies fit the endpoint."""
    endpoint = serverFromString(None, settings.listen) if settings.listen.startswith(("tcp", "ssl", "unix")) else None
    wide = [network for network in settings.trusted_proxies if network.prefixlen <= EVERYBODY]
    if wide:
        yield wrong(
            "proxy",
            f"SOLISYNC_TRUSTED_PROXIES trusts {wide[0]}: any player may claim any address, and escape every rate limit",
            "list the addresses of the proxies alone",
        )
    elif isinstance(endpoint, UNIXServerEndpoint):
        yield fine("proxy", "every client of the unix socket is trusted")
    elif settings.trusted_proxies:
        yield fine("proxy", f"{len(settings.trusted_proxies)} addresses or ranges are trusted")
    elif getattr(endpoint, "_interface", "") in ("127.0.0.1", "::1", "localhost"):
        yield note(
            "proxy",
            "it listens on this machine alone, and trusts no proxy: behind one, all players would share a rate limit",
            "if there is a proxy, set SOLISYNC_TRUSTED_PROXIES=127.0.0.1",
        )
    else:
        yield fine("proxy", "no proxy is trusted, which is right if players connect directly")


def auth_limit(settings: ServingSettings) -> Iterator[Finding]:
    """Check that passwords can't be guessed faster than by default."""
    limit = settings.auth_limit
    if limit.most * AUTH.seconds > AUTH.most * limit.seconds:
        yield note(
            "limit",
            f"one address may log in {limit.most} times in {limit.seconds} s, which is above the default of"
            f" {AUTH.most} in {AUTH.seconds}: passwords are guessed that much faster",
            "unset SOLISYNC_AUTH_LIMIT unless many players share an address",
        )


async def listener(settings: ServingSettings, reactor: ReactorBase) -> list[Finding]:
    """Check that the port is free, or that this version serves there."""
    where = settings.listen
    try:
        await maybeDeferred(listen(reactor, where, Factory()).stopListening)
    except FatalError as error:
        refusal = str(error).removeprefix("solisync: ")
    else:
        return [fine("port", f"{where} is free")]
    if not any(reason in refusal for reason in IN_USE):
        return [wrong("port", refusal, "set another --listen")]
    try:
        version = await deferToThreadPool(reactor, reactor.getThreadPool(), _ask, serverFromString(reactor, where))
    except (OSError, http.client.HTTPException):
        version = None
    if version is None:
        return [wrong("port", f"{where} is in use, and not by a solisync", "stop that, or set another --listen")]
    text = f"solisync {version} is running on {where}"
    return [fine("port", text) if version == __version__ else note("port", text, f"this is {__version__}: restart it")]


def _ask(endpoint: object) -> str | None:
    """The version of the solisync that serves at an endpoint, None when it is another program; blocks."""
    connection = http.client.HTTPConnection("localhost")
    match endpoint:
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
        connection.request("GET", "/health")
        health = msgspec.json.decode(connection.getresponse().read(1000))
        return str(health["version"]) if health["status"] == "ok" else None
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, KeyError):
        return None
    finally:
        connection.close()
