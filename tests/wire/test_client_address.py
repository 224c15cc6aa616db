"""The client's address in rate limits and the log (docs/security.md "Addresses and proxies")."""

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
def test_client_is_the_last_hop_that_is_not_a_trusted_proxy(peer, forwarded, client):
    """X-Forwarded-For is read from the right, past trusted proxies, up to an unreadable part."""
    assert client_address(peer, forwarded, PROXIES) == (client and ip_address(client))


addresses = st.ip_addresses().map(str)
spellings = st.one_of(addresses, addresses.map(lambda text: f"[{text}]:80" if ":" in text else f"{text}:80"))


@given(
    st.lists(st.one_of(spellings, texts(max_size=30))),
    spellings,
    st.lists(st.sampled_from(["10.1.2.3", "fd00::2"]), max_size=HOPS_MAX - 1),
)
def test_hops_left_of_the_proxys_entry_are_ignored(forged, real, proxies):
    """The client may have written them."""
    if any(parse_address(real) in network for network in PROXIES):
        return
    assert client_address("10.0.0.1", [*forged, ", ".join([real, *proxies])], PROXIES) == parse_address(real)


@given(st.lists(texts()), st.one_of(st.none(), addresses))
def test_any_header_text_gives_a_bucket(forwarded, peer):
    """No header makes the reading fail."""
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
def test_ipv6_client_counts_by_its_network(address, expected):
    """IPv4 clients count by address, IPv6 clients by /64."""
    assert bucket(parse_address(address)) == expected


async def tries(ask, count, make_headers, **options):
    return [(await ask("POST", "/api/auth/refresh", make_headers(n), b"{}", **options)).status for n in range(count)]


async def test_client_behind_a_proxy_can_not_escape_its_rate_limit(ask, server):
    """Forged hops and other addresses of the same /64 count for the same client."""
    real = new_address()
    forged = await tries(ask, 11, lambda n: {"X-Forwarded-For": f"192.0.2.{n}, {real}"})
    assert forged == [400] * 10 + [429]
    roaming = await tries(ask, 11, lambda n: {"X-Forwarded-For": f"[2001:db8:77::{n:x}]:4{n}"})
    assert roaming == [400] * 10 + [429]


async def test_header_of_an_unknown_proxy_is_ignored_with_one_warning(ask, reactor, shared_dsn, warnings, server):
    """The warning names the setting for trusted proxies."""
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_TRUSTED_PROXIES": ""})
    try:
        statuses = await tries(ask, 11, lambda n: {"X-Forwarded-For": new_address()}, port=running.port)
    finally:
        await running.service.stopService()
    assert statuses == [400] * 10 + [429]
    (warning,) = [event for event in warnings if "SOLISYNC_TRUSTED_PROXIES" in event["log_format"]]
    assert warning["peer"] == "127.0.0.1"


def test_address_has_at_most_128_characters():
    """A zone may be long, but not endless."""
    zone = "z" * (ADDRESS_MAX - len("fe80::1%"))
    assert parse_address(f" fe80::1%{zone}") == ip_address("fe80::1")
    assert parse_address(f"fe80::1%{zone}z") is None


def test_remembered_clients_are_bounded():
    """The memory stays small for any number of addresses and any length of headers."""
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
def test_forwarded_header_of_an_untrusted_peer_is_reported(peer, forwarded, forged):
    """Operators learn of it by a warning."""
    assert CallerResolver(PROXIES).resolve(peer, forwarded).forged == forged


def test_unix_socket_is_always_a_trusted_proxy(bench, warnings):
    """Clients that come without its header count as one."""
    for header, name, bucket_name in [
        (b"", "unix", "unix"),
        (b"X-Forwarded-For: 198.51.100.1\r\n", "198.51.100.1", "198.51.100.1"),
    ]:
        channel, _ = bench.connect(b"GET /later HTTP/1.1\r\nHost: a\r\n" + header + b"\r\n", UNIXAddress("/s"))
        assert channel.request.caller == (name, bucket_name, False)
        assert not warnings


async def test_unix_socket_serves_and_refuses(reactor, tmp_path):
    """A proxy on the same machine may use the socket instead of TCP."""
    bench = Bench()
    port = reactor.listenUNIX(str(tmp_path / "s"), bench.site)
    wire = await connectProtocol(UNIXClientEndpoint(reactor, str(tmp_path / "s")), Wire())
    wire.send(b"GET /big HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.1\r\n\r\nnonsense\r\n")
    assert [answer.status for answer in await wire.answers()] == [200, 400]
    await port.stopListening()
