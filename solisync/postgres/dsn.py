"""libpq connection strings (DSNs): checked when settings are read, and split into one for each host and address.

libpq would try several hosts and addresses itself, but without a time limit for each, and looking up a name would block
the reactor. libpq adds options from variables such as PGHOST, and from a service file.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

import psycopg2
from psycopg2 import extensions
from twisted.internet.base import ReactorBase
from twisted.internet.threads import deferToThreadPool

from ..errors import ConnectionFailed

_URI = re.compile(r"postgres(?:ql)?://")
_NOWHERE = "/nonexistent"  # a socket directory: libpq reads all options, and then finds no server

_ESCAPES = "write % as %25, @ as %40 and / as %2F in a name or a password"
_WRONG_ESCAPE = "has a % that doesn't begin a valid escape: write it as %25"
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_WHOLE_NUMBERS = re.compile("connect_timeout|tcp_user_timeout|keepalives(?:_idle|_interval|_count)?")
# libpq's errors about one option, and about options that don't fit together; the latter repeat no free text.
_INVALID = re.compile(r'invalid (?:integer value .*for connection option "(\w+)"$|"?(\w+)"? (?:value|number))')
_COMBINATION = re.compile(r"could not match|weak ")


def with_defaults(dsn: str) -> str:
    """Return the DSN, with keepalive settings for a long-lived connection unless it has its own."""
    wanted = {"application_name": "solisync", "keepalives_idle": 30, "keepalives_interval": 10}
    wanted["tcp_user_timeout"] = 10_000
    return _join(wanted | extensions.parse_dsn(dsn))


def without_password(dsn: str) -> tuple[str, str | None]:
    """Return the DSN as a keyword=value string without its password, and the password.

    The string may be on a command line, which every user of the machine can read. Raises ValueError for a DSN with
    another secret, because programs accept such a secret only there.
    """
    given = extensions.parse_dsn(dsn)
    for name in ("sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"):
        if name in given:
            raise ValueError(f"has {name}, which users of this machine could see on the command line of other programs")
    password = given.pop("password", None)
    return _join(given), password


def server_of(dsn: str) -> str:
    """Return only the hosts, the ports and the name of the database of a DSN."""
    given = extensions.parse_dsn(dsn)
    return " ".join(f"{name}={given[name]}" for name in ("host", "port", "dbname") if given.get(name))


def each_host(dsn: str) -> tuple[str, ...]:
    """Split the DSN into one for each host, in the order in which to try the hosts."""
    given = extensions.parse_dsn(dsn)
    listed = {name: given[name].split(",") for name in ("host", "hostaddr", "port") if given.get(name)}
    count = max((len(values) for name, values in listed.items() if name != "port"), default=1)
    if count == 1 or any(len(values) not in (1, count) for values in listed.values()):
        return (dsn,)  # libpq will report the error
    wanted = [given]
    if given.get("target_session_attrs") == "prefer-standby":  # as libpq does, try all hosts twice
        wanted = [given | {"target_session_attrs": kind} for kind in ("standby", "any")]
    return tuple(
        _join(each | {name: values[index % len(values)] for name, values in listed.items()})
        for each in wanted
        for index in range(count)
    )


async def each_address(reactor: ReactorBase, dsn: str) -> list[str]:
    """Split the DSN of one host into one for each address of its name; raise ConnectionFailed if there is none.

    The name stays in the DSN, because TLS and the password file need it.
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


def check_dsn(dsn: str) -> None:
    """Raise ValueError if libpq can't read the DSN or could never connect with it.

    The message quotes only the names of options. If the password has a character that should have been escaped, the
    rest of the password may be parsed as a host, a port, a database or an option.
    """
    uri = _URI.match(dsn)
    if uri is not None:
        if _BARE_PERCENT.search(dsn):
            raise ValueError(_WRONG_ESCAPE)
        credentials, at, _ = dsn[uri.end() :].partition("?")[0].rpartition("@")
        if at and re.search("[@/]", credentials):
            raise ValueError(f"has a character that is not escaped: {_ESCAPES}")
    try:
        given = extensions.parse_dsn(dsn)
    except UnicodeDecodeError:
        raise ValueError(_WRONG_ESCAPE) from None
    except psycopg2.Error:
        if uri is not None:
            raise ValueError(f"isn't a URI that libpq can read: check its options, and {_ESCAPES}") from None
        raise ValueError("is neither a postgresql:// URI nor a libpq keyword=value string") from None
    for problem in _problems(given):
        raise ValueError(problem)


def missing_root_certificate(dsn: str, environ: Mapping[str, str]) -> str | None:
    """Return the certificate file that the DSN or the environment names if that file is missing, else None."""
    given = extensions.parse_dsn(dsn)
    mode = given.get("sslmode") or environ.get("PGSSLMODE", "")
    hosts = given.get("host", "").split(",") if "hostaddr" not in given else ["by address"]
    if not mode.startswith("verify-") or all(not host or host.startswith(("/", "@")) for host in hosts):
        return None
    file = given.get("sslrootcert") or environ.get("PGSSLROOTCERT") or os.path.expanduser("~/.postgresql/root.crt")
    return None if file == "system" or os.path.exists(file) else file


def _join(parts: dict[str, Any]) -> str:
    return cast(str, extensions.make_dsn(**parts))


def _is_name(host: str) -> bool:
    if not host or host.startswith(("/", "@")) or "," in host:  # libpq's default, a unix socket, an invalid list
        return False
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return False
    return True


def _problems(given: Mapping[str, str]) -> Iterator[str]:
    """Yield the errors that libpq finds in the options before it connects."""
    for name, value in given.items():
        if _WHOLE_NUMBERS.fullmatch(name) and not re.fullmatch(r"[+-]?\d{1,9}", value.strip()):
            yield f"has no valid {name}"
    hosts = [given[name].split(",") for name in ("host", "hostaddr") if given.get(name)]
    if any("@" in host[1:] for host in (hosts[0] if hosts else [])):
        yield "has an @ in the name of a host"
    nowhere = {"host": ",".join([_NOWHERE] * max(map(len, hosts), default=1)), "hostaddr": "", "password": "-"}
    try:
        psycopg2.connect(extensions.make_dsn(**{**given, **nowhere}), async_=True).close()
    except psycopg2.Error as error:
        for line in str(error).splitlines():
            if found := _INVALID.match(line):
                yield f"has no valid {found[1] or found[2]}"
            elif line.startswith("definition of service"):
                yield "names a service that no service file defines"
            elif _COMBINATION.match(line):
                yield f"can't work: {line}"
