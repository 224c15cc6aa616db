"""Who the client is, as rate limits and the log see it (docs/security.md "Addresses and proxies")."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.address import UNIXAddress
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol

from solisync.access.client_address import (
    ADDRESS_MAX,
    HOPS_MAX,
    REMEMBERED,
    CallerResolver,
    bucket,
    client_address,
    parse_address,
)
from tests.harness.http_requests import new_address
from tests.harness.service import start
from tests.harness.strategies import texts
from tests.wire.bench import Bench
from tests.wire.sockets import Wire

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.1", [], "203.0.113.1"),
        ("203.0.113.1", ["198.51.100.1"], "203.0.113.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.9, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.9", "198.51.100.1,10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1:443"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("10.0.0.1", ["[2001:db8::1]"], "2001:db8::1"),
        ("10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.1" + ", 10.0.0.2" * (HOPS_MAX - 1)], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1" + ", 10.0.0.2" * HOPS_MAX], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.1, nonsense, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.1, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1,"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:99999"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:" + "1" * 5000], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1%eth0"], "10.0.0.1"),
        ("10.0.0.1", ["fe80::1%eth0"], "fe80::1"),
        ("fd00::1", ["198.51.100.1"], "198.51.100.1"),
        (None, ["198.51.100.1"], "198.51.100.1"),
        (None, ["192.0.2.1, 198.51.100.1"], "198.51.100.1"),
        (None, ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        (None, [], None),
        (None, ["nonsense"], None),
    ],
)
def test_the_client_is_the_last_hop_that_is_not_ours(peer, forwarded, client):
    """X-Forwarded-For is read from the right, past trusted proxies, up to what can't be read."""
    assert client_address(peer, forwarded, PROXIES) == (client and ip_address(client))


addresses = st.ip_addresses().map(str)
spellings = st.one_of(addresses, addresses.map(lambda text: f"[{text}]:80" if ":" in text else f"{text}:80"))


@given(
    st.lists(st.one_of(spellings, texts(max_size=30))), spellings, st.lists(st.sampled_from(["10.1.2.3", "fd00::2"]))
)
def test_what_a_client_writes_itself_changes_nothing(forged, real, proxies):
    """Whatever stands to the left of the address that our own proxy wrote is not looked at."""
    if any(parse_address(real) in network for network in PROXIES):
        return
    assert client_address("10.0.0.1", [*forged, ", ".join([real, *proxies])], PROXIES) == parse_address(real)


@given(st.lists(texts()), st.one_of(st.none(), addresses))
def test_any_text_is_survived(forwarded, peer):
    """No header makes the reading of it fail, and the result is always something to count by."""
    assert bucket(client_address(peer, forwarded, PROXIES))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
        ("2001:db8:0:1:2:3:4:5", "2001:db8:0:1::/64"),
        ("2001:db8:0:2:2:3:4:5", "2001:db8:0:2::/64"),
    ],
)
def test_an_ipv6_client_is_its_network(address, expected):
    """IPv4 clients count one by one, IPv6 clients by /64."""
    assert bucket(parse_address(address)) == expected


async def tries(ask, count, make_headers, **options):
    return [(await ask("POST", "/api/auth/refresh", make_headers(n), b"{}", **options)).status for n in range(count)]


async def test_a_client_behind_our_proxy_can_not_change_its_name(ask, server):
    """Forged hops don't open a new rate limit; nor do other addresses of the same /64."""
    real = new_address()
    forged = await tries(ask, 11, lambda n: {"X-Forwarded-For": f"192.0.2.{n}, {real}"})
    assert forged == [400] * 10 + [429]
    roaming = await tries(ask, 11, lambda n: {"X-Forwarded-For": f"[2001:db8:77::{n:x}]:4{n}"})
    assert roaming == [400] * 10 + [429]


async def test_an_unknown_proxy_is_not_believed_and_warned_of_once(ask, reactor, shared_dsn, warnings, server):
    """Without trusted proxies the header is ignored, and one warning names the setting."""
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_TRUSTED_PROXIES": ""})
    try:
        statuses = await tries(ask, 11, lambda n: {"X-Forwarded-For": new_address()}, port=running.port)
    finally:
        await running.service.stopService()
    assert statuses == [400] * 10 + [429]
    (warning,) = [event for event in warnings if "SOLISYNC_TRUSTED_PROXIES" in event["log_format"]]
    assert warning["peer"] == "127.0.0.1"


def test_an_address_is_at_most_so_long():
    """A zone may be long, though not endless: what is longer than 128 characters is no address."""
    zone = "z" * (ADDRESS_MAX - len("fe80::1%"))
    assert parse_address(f" fe80::1%{zone}") == ip_address("fe80::1")
    assert parse_address(f"fe80::1%{zone}z") is None


def test_only_so_many_clients_are_remembered_and_none_with_much_to_say():
    """However many addresses there are, and however long what a client sends, this stays small."""
    clients = CallerResolver(PROXIES)
    long = "9" * ADDRESS_MAX
    assert clients.resolve("10.0.0.1", ("192.0.2.1", long)) == ("10.0.0.1", "10.0.0.1", False)
    assert clients._remembered.cache_info().currsize == 0
    for number in range(REMEMBERED + 10):
        name = f"198.51.{number >> 8}.{number & 255}"
        for _ in range(2):
            assert clients.resolve("10.0.0.1", (name,)) == (name, name, False)
    information = clients._remembered.cache_info()
    assert (information.currsize, information.hits) == (REMEMBERED, REMEMBERED + 10)


@pytest.mark.parametrize(
    ("peer", "forwarded", "forged"),
    [("203.0.113.1", ("192.0.2.1",), True), ("203.0.113.1", (), False), ("10.0.0.1", ("192.0.2.1",), False)],
)
def test_who_may_not_send_the_header_is_known(peer, forwarded, forged):
    """So that it can be told to whoever runs the service."""
    assert CallerResolver(PROXIES).resolve(peer, forwarded).forged == forged


def test_a_unix_socket_is_always_a_trusted_proxy(bench, warnings):
    """Its header is believed; without one, all who come that way count as one."""
    for header, name, bucket_name in [
        (b"", "unix", "unix"),
        (b"X-Forwarded-For: 198.51.100.1\r\n", "198.51.100.1", "198.51.100.1"),
    ]:
        channel, _ = bench.connect(b"GET /later HTTP/1.1\r\nHost: a\r\n" + header + b"\r\n", UNIXAddress("/s"))
        (request,) = channel.requests
        assert request.caller == (name, bucket_name, False)
        assert not warnings


async def test_a_unix_socket_serves_and_refuses(reactor, tmp_path):
    """What holds for TCP holds for the socket that a proxy on the same machine uses."""
    bench = Bench()
    port = reactor.listenUNIX(str(tmp_path / "s"), bench.site)
    wire = await connectProtocol(UNIXClientEndpoint(reactor, str(tmp_path / "s")), Wire())
    wire.send(b"GET /big HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.1\r\n\r\nnonsense\r\n")
    assert [answer.status for answer in await wire.answers()] == [200, 400]
    await port.stopListening()
