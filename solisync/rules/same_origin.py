"""Whether a page of this service itself sent a request; docs/security.md "Logins of browsers".

Browsers send cookies along with requests that other sites cause, so whatever reads one asks this first. No page can set
Host, Origin or Sec-Fetch-Site; and to send JSON to another origin it needs leave, which these routes never give.
"""

import re
from collections.abc import Sequence

_ORIGIN = re.compile(r"(https?)://([^/?#@\s]+)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^:@\[\]\s]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


def is_same_origin(
    *, content_types: Sequence[str], hosts: Sequence[str], origins: Sequence[str], fetch_sites: Sequence[str]
) -> bool:
    """Whether a request of this service's own page has these values of Content-Type, Host, Origin and Sec-Fetch-Site.

    The scheme of Origin is not compared: the service does not know what a proxy before it speaks with browsers.
    """
    if len(content_types) != 1 or content_types[0].partition(";")[0].strip(" \t").lower() != "application/json":
        return False
    if fetch_sites and list(fetch_sites) != ["same-origin"]:
        return False
    if not origins:
        return bool(fetch_sites)
    return len(origins) == len(hosts) == 1 and _leads_to(origins[0], hosts[0])


def is_secure(origins: Sequence[str]) -> bool:
    """Whether the browser has the page over HTTPS, as this Origin says."""
    return len(origins) == 1 and origins[0].lower().startswith("https://")


def _leads_to(origin: str, host: str) -> bool:
    match = _ORIGIN.fullmatch(origin)
    if match is None:
        return False
    port = _PORTS[match[1].lower()]
    wanted = _host_and_port(match[2], port)
    return wanted is not None and wanted == _host_and_port(host, port)


def _host_and_port(authority: str, default_port: int) -> tuple[str, int] | None:
    match = _AUTHORITY.fullmatch(authority)
    return match and (match[1].lower(), int(match[2] or default_port))
