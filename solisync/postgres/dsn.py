"""libpq connection strings (DSNs): one for each host in a list, and one for each address that a host's name has.

libpq would try hosts and addresses itself, but without a time limit for each, and it would look names up while the
reactor stands still. What PGHOST or a service file say instead of the DSN is left to libpq.
"""

import ipaddress
import socket
from contextlib import suppress
from typing import Any, cast

from psycopg2 import extensions
from twisted.internet.base import ReactorBase
from twisted.internet.threads import deferToThreadPool

from ..errors import ConnectionFailed


def with_defaults(dsn: str) -> str:
    """The DSN with the keepalive settings of a long-lived connection, where it doesn't have its own."""
    wanted = {"application_name": "solisync", "keepalives_idle": 30, "keepalives_interval": 10}
    wanted["tcp_user_timeout"] = 10_000
    return _join(wanted | extensions.parse_dsn(dsn))


def without_password(dsn: str) -> tuple[str, str | None]:
    """The DSN as a keyword=value string without its password, and the password.

    The string may stand on a command line, which every user of the machine can read. Raises ValueError for a DSN with
    other secrets, which can't be given to a program in any other way.
    """
    given = extensions.parse_dsn(dsn)
    for name in ("sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"):
        if name in given:
            raise ValueError(f"has {name}, which other programs could only be told where everybody sees it")
    password = given.pop("password", None)
    return _join(given), password


def server_of(dsn: str) -> str:
    """The hosts, ports and name of the database in a DSN, and nothing else of it."""
    given = extensions.parse_dsn(dsn)
    return " ".join(f"{name}={given[name]}" for name in ("host", "port", "dbname") if given.get(name))


def each_host(dsn: str) -> tuple[str, ...]:
    """The DSN split into one for each host, in the order in which to try them."""
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
    """The DSN of one host split into one for each address of its name; raises ConnectionFailed when there is none.

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
    if not host or host.startswith(("/", "@")) or "," in host:  # libpq's default, a unix socket, an invalid list
        return False
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return False
    return True
