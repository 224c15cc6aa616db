"""Hosts and addresses in a DSN."""

import socket
import threading

import psycopg2
import pytest
from twisted.internet.task import deferLater

from solisync.errors import ConnectionFailed
from solisync.postgres.connection import Connection
from solisync.postgres.dsn import each_address, each_host
from tests.harness.constants import PATIENCE
from tests.postgres.notes import started


async def test_a_name_is_looked_up_while_the_service_goes_on(reactor, monkeypatch):
    """The resolver may take its time: in a thread."""
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


async def test_a_name_without_an_address_is_a_failed_connection(reactor, monkeypatch):
    """The other hosts are tried, and it is looked up again the next time."""

    def fail(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(ConnectionFailed, match=r"^can't look up db\.test: Name or service not known; connection to"):
        await Connection.open(reactor, "host=db.test,/nowhere")


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
async def test_only_names_are_looked_up(reactor, monkeypatch, dsn):
    """Addresses and unix sockets are taken as they are; so is what the DSN leaves to libpq."""
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
def test_a_dsn_is_taken_apart_by_host(dsn, hosts):
    """Each host with its own port and address; a list that does not fit is left for libpq to refuse."""
    parse = psycopg2.extensions.parse_dsn
    assert [parse(host) for host in each_host(dsn)] == [parse(host) for host in hosts]
