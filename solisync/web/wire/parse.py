"""The syntax of requests (RFC 9112): strict checks of single lines, and one pattern for the head of ordinary requests.

Input that a proxy and a server parse differently can smuggle a request past the proxy (RFC 9112 §11.2). Twisted has
closed the known holes; these checks also refuse input that Twisted parses leniently.
"""

import re
from typing import NamedTuple

MAX_HEADER_BYTES = 16_384
MAX_HEADERS = 100

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED = rb'"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*+"'
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
_QUERY_BYTES = bytes(byte for byte in range(0x21, 0x7F) if byte != ord("#"))
_FIELD_LINE = re.compile(rb"%b:[\t -~\x80-\xff]*" % _TOKEN)
_CHUNK_LINE = re.compile(
    rb"\r\n([0-9A-Fa-f]+)(?:[\t ]*;[\t ]*%b(?:[\t ]*=[\t ]*(?:%b|%b))?)*" % (_TOKEN, _TOKEN, _QUOTED),
)
# All repeats are possessive, so that matching takes one pass over the head. `read_head` checks the bytes of the query:
# its `translate` takes a fifth of the time of a set of characters, for queries of up to 16 KiB.
_HEAD = re.compile(
    rb"(?P<method>%b) (?P<uri>(?P<path>/[!-\"$->@-~]*+)(?:\?(?P<query>[^ ]*+))?+) HTTP/1\.1\r\n"
    rb"(?P<fields>%b:[\t -~\x80-\xff]*+(?:\r\n%b:[\t -~\x80-\xff]*+)*+)\r\n\r\n" % (_TOKEN, _TOKEN, _TOKEN)
)

# Matches a header line with control characters, or one that continues the previous line (folding).
is_malformed = re.compile(rb"\A[ \t]|" + _CONTROL).search

# Matches a chunk's line with the line end before it: the size in hexadecimal digits (group 1), and extensions.
read_chunk_line = _CHUNK_LINE.fullmatch

is_field_line = _FIELD_LINE.fullmatch


def has_bare_line_end(rest: bytes | bytearray) -> bool:
    """Whether the rest after splitting at CRLF contains a lone CR or LF, so that no valid line can follow."""
    return _BARE.search(rest) is not None


def is_host(value: bytes) -> bool:
    """Whether a value of Host is valid: a name or an address, with or without a port, or empty (RFC 9112 §3.2)."""
    return _HOST.fullmatch(value) is not None


def target_path(target: bytes) -> bytes | None:
    """Return the path of a request target: a path, an absolute URI or `*` (RFC 9112 §3.2); None for anything else.

    All printable characters except `#` are allowed, because browsers send some that RFC 3986 excludes from queries.
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
    """A request line and header fields, by names in lower case; the head ends at the index `end` of the data."""

    method: bytes
    uri: bytes
    path: bytes
    fields: dict[bytes, list[bytes]]
    length: int  # of the body
    end: int


def read_head(data: bytes) -> RequestHead | None:
    """Return the head at the beginning of the data, or None if it is incomplete or not ordinary.

    An ordinary request is HTTP/1.1 for a path, with one Host, and without a body or with one of known length. Twisted
    reads all others line by line, with the checks of `Channel`: this function refuses nothing.

    Fast path: replaces Twisted's reading line by line, 70,000 instructions, see docs/performance.md.
    """
    match = _HEAD.match(data)
    if match is None or match.end() > MAX_HEADER_BYTES:
        return None
    method, uri, path, query, block = match.groups()
    if query is not None and query.translate(None, _QUERY_BYTES):
        return None
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
