"""Checks a DSN before the service starts: whether libpq could ever connect with it.

Messages name no part of the DSN but options. A character of the password that should have been escaped may have made a
host, a port, a database or an option of what follows it.
"""

import os
import re
from collections.abc import Iterator, Mapping

import psycopg2
from psycopg2 import extensions

URI = re.compile(r"postgres(?:ql)?://")
NOWHERE = "/nonexistent"  # a socket directory: libpq reads all options, and then finds no server

_ESCAPES = "write % as %25, @ as %40 and / as %2F in a name or a password"
_WRONG_ESCAPE = "has a % that begins no valid escape: write it as %25"
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_WHOLE_NUMBERS = re.compile("connect_timeout|tcp_user_timeout|keepalives(?:_idle|_interval|_count)?")
# What libpq says of an option; of others that it can't use with each other, it repeats no free text.
_INVALID = re.compile(r'invalid (?:integer value .*for connection option "(\w+)"$|"?(\w+)"? (?:value|number))')
_COMBINATION = re.compile(r"could not match|weak ")


def check_dsn(dsn: str) -> None:
    """Raise ValueError, naming no value in the DSN, when libpq can't read it or could never connect with it."""
    uri = URI.match(dsn)
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
            raise ValueError(f"is no URI that libpq can read: look at its options, and {_ESCAPES}") from None
        raise ValueError("is neither a postgresql:// URI nor a libpq keyword=value string") from None
    for problem in _problems(given):
        raise ValueError(problem)


def missing_root_certificate(dsn: str, environ: Mapping[str, str]) -> str | None:
    """The file with which libpq is to verify the server, by the DSN or the environment, if there is no such file."""
    given = extensions.parse_dsn(dsn)
    mode = given.get("sslmode") or environ.get("PGSSLMODE", "")
    hosts = given.get("host", "").split(",") if "hostaddr" not in given else ["by address"]
    if not mode.startswith("verify-") or all(not host or host.startswith(("/", "@")) for host in hosts):
        return None
    file = given.get("sslrootcert") or environ.get("PGSSLROOTCERT") or os.path.expanduser("~/.postgresql/root.crt")
    return None if file == "system" or os.path.exists(file) else file


def _problems(given: Mapping[str, str]) -> Iterator[str]:
    """What libpq finds wrong with options, before it connects to anything."""
    for name, value in given.items():
        if _WHOLE_NUMBERS.fullmatch(name) and not re.fullmatch(r"[+-]?\d{1,9}", value.strip()):
            yield f"has no valid {name}"
    hosts = [given[name].split(",") for name in ("host", "hostaddr") if given.get(name)]
    if any("@" in host[1:] for host in (hosts[0] if hosts else [])):
        yield "has an @ in the name of a host"
    nowhere = {"host": ",".join([NOWHERE] * max(map(len, hosts), default=1)), "hostaddr": "", "password": "-"}
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
