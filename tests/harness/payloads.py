"""Data that clients send: progress, replays and images, as plain values and as bytes."""

import json
from datetime import UTC, datetime

from solisync.rules.documents import default_document

U32, U64 = 2**32 - 1, 2**64 - 1
NIL = "00000000-0000-0000-0000-000000000000"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)

REPLAY_HEADER = {
    "mode": "Classic",
    "draw_mode": "DrawOne",
    "final_score": 700,
    "time_seconds": 95,
    "recorded_at": "2026-11-20T10:00:00+02:00",
}

# Texts that aren't seeds, although a lax parser of integers might accept them.
OTHER_SPELLINGS = ["", " 5", "5 ", "5\n", "+5", "-0", "05", "00", "5.0", "5e0", "5_0", "٥", "²", str(2**64), "9" * 5000]

IMAGES = {
    "png": b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\1\0\0\0\1",
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "gif87a": b"GIF87a\x01\0\x01\0",
    "gif89a": b"GIF89a\x01\0\x01\0",
    "webp": b"RIFF\n\0\n\0WEBPVP8 ",
    "html": b"<!doctype html><script>alert(1)</script>",
    "svg": b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
    "empty": b"",
}
# For each declared media type: the IMAGES that it may be, and their extension.
DECLARED = {
    "image/jpeg": (["jpeg"], "jpg"),
    "image/jpg": (["jpeg"], "jpg"),
    "image/png": (["png"], "png"),
    "image/webp": (["webp"], "webp"),
    "image/gif": (["gif87a", "gif89a"], "gif"),
    "IMAGE/Png": (["png"], "png"),
    "image/jpeg; charset=binary": (["jpeg"], "jpg"),
    " image/gif\t; a=b; c": (["gif87a", "gif89a"], "gif"),
}
OTHER_TYPES = ["", "image/svg+xml", "text/html", "image/*", "image/png, image/png", "image", "application/octet-stream"]


def encode(payload):
    """A progress payload as a client sends it."""
    return json.dumps(payload).encode()


def progress_of(user_id=NIL, **changes):
    """The payload of a player with little progress, with changes like stats__games_won=5."""
    payload = json.loads(default_document(user_id, NOW).encode())
    for path, value in changes.items():
        part, _, name = path.partition("__")
        if name:
            payload[part][name] = value
        else:
            payload[part] = value
    return payload


def replay(**changes):
    """A replay as a client sends it."""
    return json.dumps({**REPLAY_HEADER, "seed": 2**64 - 1, "moves": [[1, 2]], **changes}).encode()
