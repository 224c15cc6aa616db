"""A DSN: refused if libpq could never connect with it, and split into hosts and addresses."""

import socket
import threading

import psycopg2
import pytest
from twisted.internet.task import deferLater

from solisync.errors import ConnectionFailed
from solisync.postgres.dsn import check_dsn, each_address, each_host, missing_root_certificate
from solisync.postgres.opening import open_connection
from tests.harness.constants import PATIENCE
from tests.postgres.notes import started


async def test_host_names_are_resolved_in_a_thread(reactor, monkeypatch):
    """A slow resolver doesn't block the reactor."""
    answered = threading.Event()

    def resolve(name, *_, **__):
        assert answered.wait(PATIENCE)
        return [(0, 0, 0, "", ("127.0.0.1", 0)), (0, 0, 0, "", ("::1", 0, 0, 0)), (0, 0, 0, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    looking = started(each_address(reactor, "host=db.test port=1 sslmode=verify-full"))
    await deferLater(reactor, 0.01)
    assert not looking.called
    answered.set()
    assert [psycopg2.extensions.parse_dsn(place) for place in await looking] == [
        {"host": "db.test", "hostaddr": address, "port": "1", "sslmode": "verify-full"}
        for address in ("127.0.0.1", "::1")
    ]


async def test_host_name_without_an_address_is_a_failed_connection(reactor, monkeypatch):
    """The pool tries the other hosts, and looks the name up again next time."""

    def fail(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(ConnectionFailed, match=r"^can't look up db\.test: Name or service not known; connection to"):
        await open_connection(reactor, "host=db.test,/nowhere")


@pytest.mark.parametrize(
    "dsn",
    [
        "dbname=a",
        "service=a host=b",
        "host=/run/postgresql",
        "host=@abstract",
        "host=127.0.0.1",
        "host=::1",
        "host=fe80::1%lo",
        "host=db.test hostaddr=127.0.0.1",
        "host=a,b,c port=1,2",
    ],
)
async def test_only_host_names_are_resolved(reactor, monkeypatch, dsn):
    """Addresses, unix sockets and what the DSN leaves to libpq are unchanged."""
    monkeypatch.setattr(socket, "getaddrinfo", None)
    assert await each_address(reactor, dsn) == [dsn]


@pytest.mark.parametrize(
    ("dsn", "hosts"),
    [
        ("dbname=a", ["dbname=a"]),
        ("host=a port=1", ["host=a port=1"]),
        ("host=a,b dbname=d", ["host=a dbname=d", "host=b dbname=d"]),
        ("host=a,b port=1", ["host=a port=1", "host=b port=1"]),
        ("postgresql://u@a:1,b:2/d", ["user=u dbname=d host=a port=1", "user=u dbname=d host=b port=2"]),
        ("hostaddr=::1,::2 host=a,b", ["hostaddr=::1 host=a", "hostaddr=::2 host=b"]),
        ("host=a,b,c port=1,2", ["host=a,b,c port=1,2"]),
        ("host=a target_session_attrs=prefer-standby", ["host=a target_session_attrs=prefer-standby"]),
        (
            "host=a,b target_session_attrs=prefer-standby",
            [f"host={host} target_session_attrs={wanted}" for wanted in ("standby", "any") for host in "ab"],
        ),
    ],
)
def test_dsn_is_split_by_host(dsn, hosts):
    """Each host has its own port and address; libpq refuses lists of different lengths."""
    parse = psycopg2.extensions.parse_dsn
    assert [parse(host) for host in each_host(dsn)] == [parse(host) for host in hosts]


GOOD = [
    "dbname=players",
    "host=db1,db2 port=5432,5433",
    "host=db1,db2 hostaddr=192.0.2.1,192.0.2.2 port=5432",
    "host=@abstract",
    "host=db1 gssencmode=require",
    "host=db1 user=u password='a b@/%'",
    "postgresql://u:p%40%2F%25:?#[@db1/d",
    "postgres://u@db1:1,db2:2/d?target_session_attrs=read-write&connect_timeout=3&keepalives_idle=10",
    "postgresql://u:p@[::1]:5433/d?sslmode=verify-full",
    "postgresql:///d?host=/run/postgresql",
    "postgresql://%2Frun%2Fpostgresql/d",
]
BAD = {
    "host=db1 sslmode=canary": "has no valid sslmode",
    "host=db1 port=canary": "has no valid port",
    "host=db1,db2 port=5432,canary": "has no valid port",
    "host=db1 port=70000": "has no valid port",
    "target_session_attrs=canary": "has no valid target_session_attrs",
    "connect_timeout=canary": "has no valid connect_timeout",
    "keepalives_idle=canary": "has no valid keepalives_idle",
    "ssl_min_protocol_version=canary": "has no valid ssl_min_protocol_version",
    "service=canary": "names a service that no service file defines",
    "host=db1,db2 port=1,2,3": "can't work: could not match 3 port numbers to 2 hosts",
    "sslmode=require sslrootcert=system": "can't work: weak sslmode",
    "host=u:canary@db1": "has an @ in the name of a host",
    "canary": "is neither a postgresql:// URI nor a libpq keyword=value string",
    "postgresql://u:50%canary@db1/d": "has a % that doesn't begin a valid escape: write it as %25",
    "postgresql://u:50%-canary@db1/d": "has a % that doesn't begin a valid escape: write it as %25",
    "postgresql://u:50%00canary@db1/d": "has a % that doesn't begin a valid escape: write it as %25",
    "postgresql://u:p@canary@db1/d": "has a character that is not escaped: write % as %25, @ as %40 and / as %2F",
    "postgresql://u:p@canary:x@db1/d": "has a character that is not escaped",
    "postgresql://u:p?x@canary@db1/d": "has an @ in the name of a host",
    "postgresql://u:12/canary@db1/d": "has a character that is not escaped",
    "postgresql://u:canary/p@db1/d": "has a character that is not escaped",
    "postgresql://u:12/x?canary@db1/d": "isn't a URI that libpq can read: check its options",
    "postgresql://u:p@db1/d?canary=1": "isn't a URI that libpq can read: check its options",
    "postgresql://u:p@db1:canary/d": "has no valid port",
}


@pytest.mark.parametrize("dsn", GOOD)
def test_dsn_that_libpq_can_use_is_accepted(dsn):
    """The kind of server doesn't matter."""
    check_dsn(dsn)


@pytest.mark.parametrize("dsn", BAD)
def test_dsn_that_can_never_work_is_refused_without_its_values(dsn):
    """The problem names the option or the escape, and nothing that may be part of the password."""
    with pytest.raises(ValueError) as refused:
        check_dsn(dsn)
    assert str(refused.value).startswith(BAD[dsn])
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    ("dsn", "environ", "missing"),
    [
        ("host=db1 sslmode=verify-full sslrootcert={place}/none", {}, "{place}/none"),
        ("host=db1 sslmode=verify-ca", {}, "{place}/.postgresql/root.crt"),
        ("host=db1 sslmode=verify-ca", {"PGSSLROOTCERT": "{place}/none"}, "{place}/none"),
        ("hostaddr=192.0.2.1", {"PGSSLMODE": "verify-full"}, "{place}/.postgresql/root.crt"),
        ("host=db1 sslmode=verify-full sslrootcert={place}/there", {}, None),
        ("host=db1 sslmode=verify-full sslrootcert=system", {}, None),
        ("host=db1 sslmode=require sslrootcert={place}/none", {}, None),
        ("host=/run/postgresql sslmode=verify-full", {}, None),
        ("dbname=d sslmode=verify-full", {}, None),
    ],
)
def test_missing_root_certificate_is_found(place, monkeypatch, dsn, environ, missing):
    """A DSN that verifies the server over TLS needs the file of the authority, where libpq looks for it."""
    monkeypatch.setenv("HOME", str(place))
    (place / "there").touch()
    given = {name: value.format(place=place) for name, value in environ.items()}
    assert missing_root_certificate(dsn.format(place=place), given) == (missing and missing.format(place=place))
