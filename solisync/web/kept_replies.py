"""Replies that clients keep: compressed if the client accepts it, and not sent again if the client has them."""

import gzip
import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from .wire.reply import Reply, matches

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
LISTS = 20  # of up to 10 KiB each
ACCEPT_MAX = 500  # characters of Accept-Encoding; browsers send some 30
QUICKLY_BYTES = 262_144  # a larger document is compressed at the fastest level, which saves 40 ms per MiB at the start

_CODING = re.compile(r"[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*(?:;[ \t]*[qQ]=([01](?:\.[0-9]{0,3})?)[ \t]*)?")


def takes_gzip(accept_encoding: str | None) -> bool:
    """Whether Accept-Encoding allows gzip (RFC 9110 §12.5.3); a value over ACCEPT_MAX characters isn't read."""
    if accept_encoding is None or len(accept_encoding) > ACCEPT_MAX:
        return False
    weights = {}
    for part in accept_encoding.split(","):
        match = _CODING.fullmatch(part)
        if match is not None:
            weights[match[1].lower()] = float(match[2] or 1)
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", 0))) > 0


@lru_cache(LISTS)
def as_list(body: bytes) -> tuple[Reply, Reply]:
    """Return a remembered list as JSON, uncompressed and compressed; equal bytes are compressed once."""
    vary = {"Vary": "Accept-Encoding"}
    packed = gzip.compress(body, 1, mtime=0)
    plain = Reply(body=body, headers=vary)
    return plain, Reply(body=packed, headers={**vary, "Content-Encoding": "gzip"}) if len(packed) < len(body) else plain


def document(body: bytes, media_type: str, headers: Mapping[str, str], *, gzipped: bool) -> Reply:
    """Return a document with its entity tag, a hash of the bytes sent: a compressed document has another tag."""
    kept = {**headers, "Vary": "Accept-Encoding"}
    if gzipped:
        packed = gzip.compress(body, 1 if len(body) > QUICKLY_BYTES else 9, mtime=0)
        if len(packed) < len(body):
            body = packed
            kept["Content-Encoding"] = "gzip"
    kept["ETag"] = f'"{sha256(body).hexdigest()[:32]}"'
    return Reply(body=body, content_type=media_type, headers=kept)


def both_ways(name: str, body: bytes, headers: Mapping[str, str]) -> tuple[Reply, Reply]:
    """Return the document uncompressed and compressed, with the media type of its file name."""
    media_type = MEDIA_TYPES[Path(name).suffix]
    return document(body, media_type, headers, gzipped=False), document(body, media_type, headers, gzipped=True)


def unless_known(reply: Reply, if_none_match: str | None) -> Reply:
    """Return the document, or the reply 304 if the client has it."""
    if matches(if_none_match, reply.headers["ETag"]):
        return Reply.not_modified(reply.headers)
    return reply
