"""How values of settings are shown to admins, without what is secret in them."""

from collections.abc import Iterable

from ..access.rate_limit import Limit
from ..postgres.dsn import server_of


def text(value: object) -> str:
    """What is its own text: numbers, paths, endpoints."""
    return str(value)


def switch(value: bool) -> str:
    """Yes or no, as it is set."""
    return "on" if value else "off"


def each(values: Iterable[object]) -> str:
    """Several, in order."""
    return ", ".join(sorted(map(str, values)))


def limit(value: Limit) -> str:
    """A rate, as it is set."""
    return f"{value.most}/{value.seconds}"


def links(values: Iterable[tuple[str, str]]) -> str:
    """Names with their addresses, as they are set."""
    return ", ".join(f"{name}={address}" for name, address in values)


def server(dsn: str) -> str:
    """Of a DSN the hosts, ports and name of the database alone."""
    return server_of(dsn)
