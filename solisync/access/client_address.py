"""The address that a request comes from, for rate limits and logs; pure functions of addresses as text.

See docs/security.md "Addresses and proxies".
"""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

Address = IPv4Address | IPv6Address
Networks = tuple[IPv4Network | IPv6Network, ...]

REMEMBERED = 4_096  # origins
ADDRESS_MAX = 128  # characters; a longer text is no address, and must not fill that memory
IPV6_CLIENT_PREFIX = 64  # the size of a customer's network, from which one client can take any number of addresses


def client_address(peer: str | None, forwarded: Sequence[str], trusted: Networks) -> Address | None:
    """The client's address, given the peer's and the lines of the request's X-Forwarded-For field.

    `peer` is None for a unix socket, which is always trusted; the result is None when such a peer forwards no address.
    Proxies append to the field, so hops are read from the right for as long as they are trusted proxies themselves, and
    up to the first that is no address: the client itself may have written what stands to the left of that.
    """
    client = None if peer is None else parse_address(peer)
    if client is not None and not _is_trusted(client, trusted):
        return client
    for hop in reversed(",".join(forwarded).split(",")):
        address = parse_address(hop)
        if address is None:
            break
        client = address
        if not _is_trusted(address, trusted):
            break
    return client


def parse_address(text: str) -> Address | None:
    """The address in a hop, which may also have a port or brackets; None when the hop has none."""
    text = text.strip(" \t")
    if len(text) > ADDRESS_MAX:
        return None
    if text.startswith("["):
        text, bracket, port = text[1:].partition("]")
        if not bracket or not _is_port(port):
            return None
    elif text.count(":") == 1:
        text, _, port = text.partition(":")
        if not _is_port(f":{port}"):
            return None
    try:
        address = ip_address(text.partition("%")[0] if ":" in text else text)  # without the zone of an IPv6 address
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def bucket(address: Address | None) -> str:
    """The key under which the requests of one client are counted: an IPv4 address, or an IPv6 /64."""
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_CLIENT_PREFIX), strict=False))
    return "unix" if address is None else str(address)


class Origin(NamedTuple):
    """The origin of a request: its `name` in logs, its `bucket` in rate limits.

    `forged`: whether a peer that is no trusted proxy has sent X-Forwarded-For.
    """

    name: str
    bucket: str
    forged: bool


class OriginResolver:
    """Finds the origin of requests, given the trusted proxies."""

    def __init__(self, trusted: Networks) -> None:
        self._trusted = trusted
        # Fast path: parsing addresses at each request, part of 37 of 157 µs at GET /health, see docs/performance.md.
        self._remembered = lru_cache(REMEMBERED)(self._find)

    def find(self, peer: str | None, forwarded: tuple[str, ...]) -> Origin:
        """The origin of a request, given the arguments of `client_address`."""
        find = self._remembered if sum(map(len, forwarded)) <= ADDRESS_MAX else self._find
        return find(peer, forwarded)

    def _find(self, peer: str | None, forwarded: tuple[str, ...]) -> Origin:
        address = client_address(peer, forwarded, self._trusted)
        name = "unix" if address is None else str(address)
        return Origin(name, bucket(address), bool(forwarded) and peer is not None and not self._believes(peer))

    def _believes(self, peer: str) -> bool:
        address = parse_address(peer)
        return address is not None and _is_trusted(address, self._trusted)


def _is_trusted(address: Address, trusted: Networks) -> bool:
    return any(address in network for network in trusted)


def _is_port(text: str) -> bool:
    digits = text[1:]
    return not text or (text[0] == ":" and digits.isascii() and digits.isdigit() and int(digits[:6]) < 65536)
