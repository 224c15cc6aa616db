"""The address of a client behind proxies, for rate limits and logs (docs/security.md "Addresses and proxies")."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

Address = IPv4Address | IPv6Address
Networks = tuple[IPv4Network | IPv6Network, ...]

REMEMBERED = 4_096  # origins
HOPS_MAX = 20  # the hops of X-Forwarded-For that are read, from the right
ADDRESS_MAX = 128  # in characters; no address is longer, and longer text isn't cached
IPV6_CLIENT_PREFIX = 64  # providers assign at least a /64, in which a client may change its address


def client_address(peer: str | None, forwarded: Sequence[str], trusted: Networks) -> Address | None:
    """Return the client's address, from the peer's address and the lines of X-Forwarded-For.

    `peer` is None for a unix socket, which is always trusted. The result is None if such a peer names no client.
    Proxies append to the header. So it is read from the right, past trusted proxies, and only up to the first hop that
    isn't an address: the client itself may have written all hops to the left of that.
    """
    client = None if peer is None else parse_address(peer)
    if client is not None and not _is_trusted(client, trusted):
        return client
    for hop in reversed(",".join(forwarded).rsplit(",", HOPS_MAX)[-HOPS_MAX:]):
        address = parse_address(hop)
        if address is None:
            break
        client = address
        if not _is_trusted(address, trusted):
            break
    return client


def parse_address(text: str) -> Address | None:
    """The address in a hop, which may be in brackets and have a port; None if there is no address."""
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
    """The key under which a client's requests are counted: its IPv4 address, or its IPv6 /64."""
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_CLIENT_PREFIX), strict=False))
    return "unix" if address is None else str(address)


class Caller(NamedTuple):
    """The origin of a request: a name for logs, and a bucket for rate limits.

    `forged` is True if X-Forwarded-For came from a peer that isn't a trusted proxy.
    """

    name: str
    bucket: str
    forged: bool


class CallerResolver:
    """Resolves and caches the origins of requests; without `trust_unix`, it ignores the header on unix sockets."""

    def __init__(self, trusted: Networks, *, trust_unix: bool = True) -> None:
        self._trusted = trusted
        self._trust_unix = trust_unix
        self._remembered = lru_cache(REMEMBERED)(self._resolve)

    def resolve(self, peer: str | None, forwarded: tuple[str, ...]) -> Caller:
        """The origin of a request; the arguments are those of `client_address`."""
        # Fast path: parsing the addresses in each request, 80,000 instructions, see docs/performance.md
        resolve = self._remembered if sum(map(len, forwarded)) <= ADDRESS_MAX else self._resolve
        return resolve(peer, forwarded)

    def _resolve(self, peer: str | None, forwarded: tuple[str, ...]) -> Caller:
        named = forwarded if peer is not None or self._trust_unix else ()
        address = client_address(peer, named, self._trusted)
        name = "unix" if address is None else str(address)
        return Caller(name, bucket(address), bool(forwarded) and peer is not None and not self._believes(peer))

    def _believes(self, peer: str) -> bool:
        address = parse_address(peer)
        return address is not None and _is_trusted(address, self._trusted)


def _is_trusted(address: Address, trusted: Networks) -> bool:
    return any(address in network for network in trusted)


def _is_port(text: str) -> bool:
    digits = text[1:]
    return not text or (text[0] == ":" and digits.isascii() and digits.isdigit() and int(digits[:6]) < 65536)
