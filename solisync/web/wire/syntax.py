"""The syntax of requests, where Twisted accepts more than RFC 9112 allows.

Input that a proxy and a server parse differently can smuggle a request past the proxy (RFC 9112 §11.2). Twisted has
closed the known ways; this module also refuses what Twisted reads leniently.
"""

import re

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
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
