"""The syntax of requests (RFC 9112): strict checks of single lines, and the head of an ordinary request in one match.

Input that a proxy and a server parse differently can smuggle a request past the proxy (RFC 9112 §11.2). Twisted has
closed the known ways; the checks also refuse what Twisted reads leniently.
"""

import re
from typing import NamedTuple

MAX_HEADER_BYTES = 16_384
MAX_HEADERS = 100

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED = rb'"[\t !#-\[\]-~\x80-\xff]*"'  # without escapes: an extension means nothing to this service
_NAME = rb"[A-Za-z0-9._~!$&'()*+,;=%-]"
_ADDRESS = rb"\[[0-9A-Fa-f:.]+\]"
_PORT = rb"(?::[0-9]*)?"

_CONTROL = rb"[\x00-\x08\x0a-\x1f\x7f]"  # all but the tab
_BARE = re.compile(rb"\n|\r[^\n]")
_HOST = re.compile(rb"(?:%b|%b*)%b" % (_ADDRESS, _NAME, _PORT))
_TARGET = re.compile(
    rb"(?:(?i:https?)://(?P<authority>(?:%b|%b+)%b))?(?P<path>/[!-\"$->@-~]*)?(?:\?[!-\"$-~]*)?"
    % (_ADDRESS, _NAME, _PORT)
)
_FIELD_LINE = re.compile(rb"%b:[\t -~\x80-\xff]*" % _TOKEN)
_CHUNK_LINE = re.compile(
    rb"\r\n([0-9A-Fa-f]+)(?:[\t ]*;[\t ]*%b(?:[\t ]*=[\t ]*(?:%b|%b))?)*" % (_TOKEN, _TOKEN, _QUOTED),
)
# All repeats are possessive, so that one pass over the head is enough.
_HEAD = re.compile(
    rb"(?P<method>%b) (?P<uri>(?P<path>/[!-\"$->@-~]*+)(?:\?[!-\"$-~]*+)?+) HTTP/1\.1\r\n"
    rb"(?P<fields>%b:[\t -~\x80-\xff]*+(?:\r\n%b:[\t -~\x80-\xff]*+)*+)\r\n\r\n" % (_TOKEN, _TOKEN, _TOKEN)
)

# A line of a header that contains control characters, or is folded, a continuation of the line before.
is_malformed = re.compile(rb"\A[ \t]|" + _CONTROL).search

# Of a chunk, with the line end before it: the size in hexadecimal digits, as the first group, and extensions.
read_chunk_line = _CHUNK_LINE.fullmatch

is_field_line = _FIELD_LINE.fullmatch


def has_bare_line_end(rest: bytes | bytearray) -> bool:
    """Whether the rest after splitting at CRLF contains a CR or an LF alone, so that no valid line can follow."""
    return _BARE.search(rest) is not None


def is_host(value: bytes) -> bool:
    """Whether this is a valid value of Host: a name or an address, with or without a port, or empty (RFC 9112 §3.2)."""
    return _HOST.fullmatch(value) is not None


def target_path(target: bytes) -> bytes | None:
    """The path in a request target: a path, an absolute URI or `*` (RFC 9112 §3.2); None for anything else.

    All printable characters but `#` are allowed: browsers send some that RFC 3986 excludes from queries.
    """
    if target == b"*":
        return target
    match = _TARGET.fullmatch(target)
    if match is None:
        return None
    if match["authority"] is not None:
        return match["path"] or b"/"
    return match["path"]


class RequestHead(NamedTuple):
    """A request line, and the values of its fields by their names in lower case; it ends at `end` of what was read."""

    method: bytes
    uri: bytes
    path: bytes
    fields: dict[bytes, list[bytes]]
    length: int  # of the body
    end: int


def read_head(data: bytes) -> RequestHead | None:
    """The head at the beginning of the data; None if it has not arrived whole, or is not ordinary.

    Ordinary are requests of HTTP/1.1 for a path, with one Host, and with a body of a known length or none. All others
    are left to Twisted, which reads line by line, and to the checks of `Channel`: this function refuses nothing.

    Fast path: replaces Twisted's reading line by line, 70,000 instructions, see docs/performance.md.
    """
    match = _HEAD.match(data)
    if match is None or match.end() > MAX_HEADER_BYTES:
        return None
    method, uri, path, block = match.groups()
    lines = block.split(b"\r\n")
    if len(lines) > MAX_HEADERS:
        return None
    fields: dict[bytes, list[bytes]] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        fields.setdefault(name.lower(), []).append(value.strip(b" \t"))
    hosts, lengths = fields.get(b"host", ()), fields.get(b"content-length", (b"0",))
    if (
        len(hosts) != 1
        or not is_host(hosts[0])
        or len(lengths) != 1
        or not lengths[0].isdigit()
        or len(lengths[0]) > 18
        or b"transfer-encoding" in fields
        or b"expect" in fields
    ):
        return None
    return RequestHead(method, uri, path, fields, int(lengths[0]), match.end())
