"""What DATABASE_URL says, taken apart: one DSN for each host in it, and one for each address that a host's name has.

libpq would do both, but asynchronously it ignores connect_timeout and waits for a silent host for ever, and it looks
names up while the whole service stands still. Only what the DSN doesn't say itself, as PGHOST or a service file do, is
left to libpq.
"""

import ipaddress
import socket
from contextlib import suppress
from typing import Any, cast

import psycopg2
from psycopg2 import extensions
from twisted.internet.base import ReactorBase
from twisted.internet.threads import deferToThreadPool

from ..errors import ConnectionFailed


def check_dsn(dsn: str) -> None:
    """Raise ValueError, naming no part of the DSN, when libpq can't read it."""
    try:
        extensions.parse_dsn(dsn)
    except psycopg2.Error:
        raise ValueError("is neither a postgresql:// URI nor a libpq keyword=value string") from None


def with_defaults(dsn: str) -> str:
    """The DSN with what a service wants that stays connected, unless it says otherwise itself."""
    wanted = {"application_name": "solisync", "keepalives_idle": 30, "keepalives_interval": 10}
    wanted["tcp_user_timeout"] = 10_000
    return _join(wanted | extensions.parse_dsn(dsn))


def without_password(dsn: str) -> tuple[str, str | None]:
    """The DSN as keyword=value words that may be seen by others, and the password that was in it.

    Raises ValueError for one with other secrets, which can't be passed on apart from it.
    """
    given = extensions.parse_dsn(dsn)
    for name in ("sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"):
        if name in given:
            raise ValueError(f"has {name}, which other programs could only be told where everybody sees it")
    password = given.pop("password", None)
    return _join(given), password


def each_host(dsn: str) -> tuple[str, ...]:
    """The DSN once for each host in it, in the order in which they are to be tried."""
    given = extensions.parse_dsn(dsn)
    listed = {name: given[name].split(",") for name in ("host", "hostaddr", "port") if given.get(name)}
    count = max((len(values) for name, values in listed.items() if name != "port"), default=1)
    if count == 1 or any(len(values) not in (1, count) for values in listed.values()):
        return (dsn,)  # libpq says what is wrong with it
    wanted = [given]
    if given.get("target_session_attrs") == "prefer-standby":  # of all hosts, so libpq goes through the list twice
        wanted = [given | {"target_session_attrs": kind} for kind in ("standby", "any")]
    return tuple(
        _join(each | {name: values[index % len(values)] for name, values in listed.items()})
        for each in wanted
        for index in range(count)
    )


async def each_address(reactor: ReactorBase, dsn: str) -> list[str]:
    """The DSN of one host once for each address that its name has; raises ConnectionFailed when it has none.

    The name stays in the DSN, because TLS and the password file go by it.
    """
    given = extensions.parse_dsn(dsn)
    host = given.get("host", "")
    if given.get("hostaddr") or "service" in given or not _is_name(host):
        return [dsn]
    try:
        found = await deferToThreadPool(
            reactor, reactor.getThreadPool(), socket.getaddrinfo, host.encode(), None, type=socket.SOCK_STREAM
        )
    except OSError as error:
        raise ConnectionFailed(f"can't look up {host}: {error.strerror or error}") from None
    addresses = dict.fromkeys(str(address[0]) for *_, address in found)
    return [_join(given | {"hostaddr": address}) for address in addresses]


def _join(parts: dict[str, Any]) -> str:
    return cast(str, extensions.make_dsn(**parts))


def _is_name(host: str) -> bool:
    if not host or host.startswith(("/", "@")) or "," in host:  # nothing, a unix socket, a list that makes no sense
        return False
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return False
    return True
