"""Parsers of settings: each function returns the value of a text, or raises ValueError with the problem.

The message continues a sentence that begins with the name of the variable or option, and never quotes a secret.
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv6Address, ip_network
from pathlib import Path

from platformdirs import user_state_path
from twisted.internet.endpoints import serverFromString
from twisted.python.url import URL

from ..access.client_address import Networks
from ..access.rate_limit import AUTH, GUEST, Limit
from ..access.tokens import can_sign
from ..postgres.dsn import check_dsn
from ..process.logs import FORMATS, LEVELS
from ..rules.controls import has_controls

SECRET_MIN_BYTES = 32
SITE_NAME_MAX = 40
SITE_LINKS_MAX = 8

_INTERFACE = re.compile(r"(?<=:interface=)(.*?)(?=:[A-Za-z]+=|$)")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_UNKNOWN_PARAMETER = re.compile(r"unexpected keyword argument ('.+')$")  # of a parser in Twisted
_NOT_A_NUMBER = re.compile(r"invalid literal for int\(\) with base \d+: ('.*')$")
_PORT = re.compile(r"(?:tcp[46]?|ssl):(?:port=)?(\d+)(?::.*)?")
_RATE = re.compile(r"(\d{1,4})/(\d{1,4})", re.ASCII)
_LINK = re.compile(r"(?:https://[!-~]+|mailto:[!-~]+|/(?![/\\])[!-~]*)")  # a browser reads /\ as //
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?", re.ASCII)
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(?:[^/@]*@)?(\[[^/\]]*\]|[^/:@?#]+):?([0-9]{1,5})?(?:[/?#].*)?")
_USUAL_PORTS = {"http": 80, "https": 443}


def secret(text: str) -> bytes:
    """A signing secret of at least SECRET_MIN_BYTES: the bytes of the environment variable, valid UTF-8 or not."""
    return _signing(text.encode("utf-8", "surrogateescape"))


def secret_file(path: str) -> bytes:
    """The signing secret in a file."""
    return _signing(_content(path))


def dsn(text: str) -> str:
    """A DSN that libpq can read and use."""
    if not text.strip():  # libpq would use all defaults, but a reader would expect the embedded database
        raise ValueError("is empty")
    check_dsn(text)
    return text


def dsn_file(path: str) -> str:
    """The DSN in a file."""
    return dsn(_content(path).decode("utf-8", "surrogateescape"))


def without_line_end(line: bytes) -> bytes:
    """`line` without the LF or CR LF at its end, but with every other byte."""
    return line.removesuffix(b"\r\n") if line.endswith(b"\r\n") else line.removesuffix(b"\n")


def directory(text: str) -> Path:
    """An absolute path."""
    if not text:
        raise ValueError("must name a directory")
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:  # there is no home directory for ~
        raise ValueError(f"can't be found: {error}: {text}") from None


def default_data_dir() -> str:
    """The default data directory: the platform's directory for a user's state, /var/lib/solisync for root.

    On Linux that is below $XDG_STATE_HOME or ~/.local/state. A user without a home has the directory of root: a service
    with a DATABASE_URL needs none, and otherwise the start names it.
    """
    if os.geteuid() != 0:
        with suppress(RuntimeError):
            return str(user_state_path("solisync"))
    return "/var/lib/solisync"


def endpoint(text: str) -> str:
    """The description of a server endpoint, checked by the endpoint's own parser.

    The parser wants each colon of an address after a backslash, and this adds them.
    """
    text = _INTERFACE.sub(lambda found: found[1].replace(":", r"\:") if _is_ipv6(found[1]) else found[1], text)
    if text.startswith("haproxy:"):
        raise ValueError(
            "can't be haproxy:, because the service reads clients' addresses from X-Forwarded-For: use tcp: or unix:,"
            " and in HAProxy `option forwardfor` instead of send-proxy"
        )
    systemd = text.startswith("systemd:")
    try:
        serverFromString(None, text)  # without a reactor, so nothing listens yet
    except Exception as error:  # each kind of endpoint fails differently: for a number, a file, a certificate
        if isinstance(error, AttributeError) and not systemd:
            return text  # a plugin's parser may need the reactor; listening will report errors
        reason = " ".join(str(error).split()) or type(error).__name__
        if found := _UNKNOWN_PARAMETER.search(reason):
            reason = f"there is no parameter {found[1]}"
        if found := _NOT_A_NUMBER.fullmatch(reason):
            reason = f"{found[1]} is not a number"
        if isinstance(error, LookupError) and systemd:
            reason = "systemd has passed no such socket"
        raise ValueError(f"is not a listening endpoint: {text!r}: {reason}") from None
    port = _PORT.fullmatch(text)
    if port and int(port[1]) > 65_535:
        raise ValueError(f"is not a listening endpoint: {text!r}: ports end at 65535")
    return text


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def admin_endpoint(text: str) -> str:
    """The description of an endpoint that can't be public by mistake: a unix socket, systemd's, or an interface."""
    kind = text.partition(":")[0]
    if kind not in ("unix", "systemd", "tcp"):
        raise ValueError(f"is neither unix:, systemd: nor tcp:: {text!r}")
    if kind == "tcp" and not any(_INTERFACE.findall(text)):
        raise ValueError(f"has no interface=, and would listen on every address: {text!r}")
    return endpoint(text)


def hosts(text: str) -> frozenset[str]:
    """Names of hosts, without ports, separated by commas."""
    found = frozenset(name.lower() for name in _list(text))
    for name in sorted(found):
        if not _HOST.fullmatch(name):
            raise ValueError(f"is not a host name: {name!r}")
    return found


def networks(text: str) -> Networks:
    """Addresses and CIDR ranges, separated by commas."""
    found = []
    for part in _list(text):
        try:
            found.append(ip_network(part, strict=False))
        except ValueError:
            raise ValueError(f"must list addresses or CIDR ranges, separated by commas; {part!r} is neither") from None
    return tuple(found)


def origins(text: str) -> frozenset[str]:
    """Origins (RFC 6454) as browsers send them, separated by commas."""
    for part in _list(text):
        try:
            sent = _as_sent(part)
        except ValueError:
            raise ValueError(
                "must list origins like https://play.example.org or capacitor://localhost, separated by commas, not"
                f" {part!r}"
            ) from None
        if sent != part:
            raise ValueError(f"must list origins as browsers send them: {sent}, not {part!r}")
    return frozenset(_list(text))


def _as_sent(address: str) -> str:
    """Return the origin of an address as browsers send it; raises ValueError if it has none."""
    found = _ADDRESS.fullmatch(address)
    scheme, host, port = found.groups() if found else ("", "", None)
    scheme = scheme.lower()
    if host.startswith("["):
        host = f"[{IPv6Address(host[1:-1])}]"
    elif scheme in _USUAL_PORTS:  # the host of an app's own scheme may have capitals
        # Python's own codec has older rules, by which a German ß is another name.
        host = host.lower() if host.isascii() else URL(scheme, host).to_uri().host
    origin = f"{scheme}://{host}"
    if port and int(port) != _USUAL_PORTS.get(scheme):
        origin += f":{int(port)}"
    if not _ORIGIN.fullmatch(origin) or int(port or 0) > 65_535:
        raise ValueError(address)
    return origin


def whole(least: int, most: int) -> Callable[[str], int]:
    """Make a parser of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
            raise ValueError(f"must be a whole number from {least} to {most}, not {text!r}")
        return int(text)

    return read


def seconds(text: str) -> float:
    """A time of at most an hour."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:
        raise ValueError(f"must be a number of seconds from 0 to 3600, not {text!r}")
    return value


def auth_limit(text: str) -> Limit:
    """The rate limit of register, login and refresh, as requests/seconds."""
    return _rate(text, AUTH)


def _rate(text: str, limit: Limit, or_else: str = "") -> Limit:
    found = _RATE.fullmatch(text)
    most, seconds = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (1 <= most <= 1000 and 1 <= seconds <= 3600):
        form = f"{or_else}requests/seconds, from 1 to 1000 in 1 to 3600, like {limit.most}/{limit.seconds}"
        raise ValueError(f"must be {form}, not {text!r}")
    return replace(limit, most=most, seconds=seconds)


def guest_limit(text: str) -> Limit | None:
    """The rate limit of new guests, as requests/seconds; None for 0."""
    return None if text == "0" else _rate(text, GUEST, "0 or ")


def site_name(text: str) -> str:
    """A name of at most 40 visible characters."""
    if not 0 < len(text) <= SITE_NAME_MAX or has_controls(text) or text.isspace():
        raise ValueError(f"must have 1 to {SITE_NAME_MAX} visible characters, not {text!r}")
    return text


def site_url(text: str) -> str:
    """An address of https, without a path."""
    url = text.removesuffix("/")
    if not (url.startswith("https://") and _ORIGIN.fullmatch(url)):
        raise ValueError(
            f"must be an address like https://play.example.org, without a path, not {text!r}: below a path, only the"
            " API works, because pages and links begin at the root of a host"
        )
    return url


def site_links(text: str) -> tuple[tuple[str, str], ...]:
    """Names and addresses, as Name=address, separated by commas."""
    links = tuple(_link(part) for part in _list(text))
    if len(links) > SITE_LINKS_MAX:
        raise ValueError(f"must list at most {SITE_LINKS_MAX} links, not {len(links)}")
    return links


def log_format(text: str) -> str:
    """One of the formats of solisync.process.logs."""
    if text not in FORMATS:
        raise ValueError(f"must be {' or '.join(FORMATS)}, not {text!r}")
    return text


def log_level(text: str) -> str:
    """One of the levels of solisync.process.logs."""
    if text not in LEVELS:
        raise ValueError(f"must be {', '.join(LEVELS[:-1])} or {LEVELS[-1]}, not {text!r}")
    return text


def switch(text: str) -> bool:
    """On or off."""
    if text not in ("on", "off"):
        raise ValueError(f"must be on or off, not {text!r}")
    return text == "on"


def _link(text: str) -> tuple[str, str]:
    name, _, address = (part.strip() for part in text.partition("="))
    if not name or has_controls(name) or not _LINK.fullmatch(address):
        raise ValueError(
            "must list links like Privacy=https://example.org/privacy, separated by commas, whose addresses begin with"
            f" https:, mailto: or one slash; not {text!r}"
        )
    return name, address


def _signing(value: bytes) -> bytes:
    if len(value) < SECRET_MIN_BYTES:
        raise ValueError(f"must hold at least {SECRET_MIN_BYTES} bytes, it has {len(value)}")
    if not can_sign(value):
        raise ValueError("is a key or a certificate: use random text")
    return value


def _content(path: str) -> bytes:
    try:
        return without_line_end(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"can't be read: {error.strerror}: {path}") from None


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
