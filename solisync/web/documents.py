"""Documents for browsers: compressed for those that take it, and not sent again to those that have them."""

import gzip
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from .conditional import matches
from .wire.reply import Reply

STATIC = Path(__file__).resolve().parents[1] / "static"
PLAYERS_FILES, CONSOLE_FILES, DOCS_FILES = STATIC / "players", STATIC / "console", STATIC / "docs"
FILE_HEADERS = {"Cache-Control": "public, no-cache"}  # to be asked for each time, or a page could mix two versions
MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
ACCEPT_MAX = 500  # characters of Accept-Encoding; browsers send some 30
QUICKLY_BYTES = 262_144  # a larger document is compressed quickly: at the start, a MiB would take 40 ms longer

_CODING = re.compile(r"[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*(?:;[ \t]*[qQ]=([01](?:\.[0-9]{0,3})?)[ \t]*)?")


def takes_gzip(accept_encoding: str | None) -> bool:
    """Whether a client that sends this Accept-Encoding understands gzip (RFC 9110 §12.5.3); a longer one isn't read."""
    if accept_encoding is None or len(accept_encoding) > ACCEPT_MAX:
        return False
    weights = {}
    for part in accept_encoding.split(","):
        match = _CODING.fullmatch(part)
        if match is not None:
            weights[match[1].lower()] = float(match[2] or 1)
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", 0))) > 0


def document(body: bytes, media_type: str, headers: Mapping[str, str], *, gzipped: bool) -> Reply:
    """A document with its entity tag: the hash of the bytes that are sent, so compressed ones have another."""
    kept = {**headers, "Vary": "Accept-Encoding"}
    if gzipped:
        packed = gzip.compress(body, 1 if len(body) > QUICKLY_BYTES else 9, mtime=0)
        if len(packed) < len(body):
            body = packed
            kept["Content-Encoding"] = "gzip"
    kept["ETag"] = f'"{sha256(body).hexdigest()[:32]}"'
    return Reply(body=body, content_type=f"{media_type}; charset=utf-8", headers=kept)


def both_ways(name: str, body: bytes, headers: Mapping[str, str]) -> tuple[Reply, Reply]:
    """The document with the media type of its file's name: as it is, and compressed."""
    media_type = MEDIA_TYPES[Path(name).suffix]
    return document(body, media_type, headers, gzipped=False), document(body, media_type, headers, gzipped=True)


def unless_known(reply: Reply, if_none_match: str | None) -> Reply:
    """The document, or a 304 for a client that has it."""
    if matches(if_none_match, reply.headers["ETag"]):
        return Reply.not_modified(reply.headers)
    return reply
