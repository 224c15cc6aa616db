"""The syntax of requests, where Twisted accepts more than RFC 9112 allows.

Input that a proxy and a server parse differently can smuggle a request past the proxy (RFC 9112 §11.2). Twisted has
closed the known ways; this module also refuses what Twisted reads leniently.
"""

import re

from twisted.web import http

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUOTED = rb'"[\t !#-\[\]-~\x80-\xff]*"'  # without escapes, which Twisted refuses in an extension
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
_FIELD_LINE = re.compile(rb"(?:%b:[\t -~\x80-\xff]*)?" % _TOKEN)
_CHUNK_LINE = re.compile(
    rb"[0-9A-Fa-f]+(?:[\t ]*;[\t ]*%b(?:[\t ]*=[\t ]*(?:%b|%b))?)*" % (_TOKEN, _TOKEN, _QUOTED),
)


# A line of a header that contains control characters, or is folded, a continuation of the line before.
is_malformed = re.compile(rb"\A[ \t]|" + _CONTROL).search


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


class Chunks(http._ChunkedTransferDecoder):
    """The chunked transfer coding (RFC 9112 §7.1), with its extensions and trailers checked."""

    def _dataReceived_CHUNK_LENGTH(self) -> bool:
        self._check(_CHUNK_LINE)
        return super()._dataReceived_CHUNK_LENGTH()

    def _dataReceived_TRAILER(self) -> bool:
        self._check(_FIELD_LINE)
        return super()._dataReceived_TRAILER()

    def _check(self, syntax: re.Pattern[bytes]) -> None:
        end = self._buffer.find(b"\r\n")
        malformed = has_bare_line_end(self._buffer) if end < 0 else not syntax.fullmatch(self._buffer, 0, end)
        if malformed:
            raise http._MalformedChunkedDataError("not a line of the chunked coding")
