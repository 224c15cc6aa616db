"""Avatars: the accepted image formats (docs/protocol.md "The player").

Only the signature of an image and its size in pixels are checked; images are never decoded. A file may therefore be
broken, or not an image. The policy of its response stops browsers from running anything in it (docs/security.md
"Uploads").
"""

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from ..errors import BadRequest

PIXELS_MAX = 4_096  # a side; a browser needs four bytes for each pixel of an image, however small its file is

# One pass of the regular expressions in C reads an image of 1 MiB in milliseconds, whatever it consists of.
_MORE = rb"(?:[\x11-\xff].|\x10[\x01-\xff])"  # a number of two bytes above PIXELS_MAX
_FRAME = rb"\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]\0[\x0b\x0e\x11\x14]\x08(?=%b|..%b)(..)(..)[\x01-\x04]"
_LARGE_FRAME = re.compile(_FRAME % (_MORE, _MORE), re.DOTALL)
_HEADER = re.compile(rb".{8}\0\0\0\rIHDR(.{4})(.{4})", re.DOTALL)
_CANVAS = re.compile(rb".{12}VP8X\x0a\0\0\0.{4}(...)(...)", re.DOTALL)
_LOSSY = re.compile(rb".{12}VP8 .{7}\x9d\x01\x2a(..)(..)", re.DOTALL)
_LOSSLESS = re.compile(rb".{12}VP8L.{4}/(.{4})", re.DOTALL)
_SCREEN = re.compile(rb".{6}(..)(..)(.)..", re.DOTALL)

_Size = tuple[int, int]


def _jpeg(image: bytes) -> _Size | None:
    """The size of a frame that is too large. Decoders skip garbage in front of it, and so does this search."""
    found = _LARGE_FRAME.search(image)
    return None if found is None else (_big(found[2]), _big(found[1]))


def _png(image: bytes) -> _Size | None:
    found = _HEADER.match(image)
    return None if found is None else (_big(found[1]), _big(found[2]))


def _webp(image: bytes) -> _Size | None:
    if found := _CANVAS.match(image):
        return _little(found[1]) + 1, _little(found[2]) + 1
    if found := _LOSSLESS.match(image):
        bits = _little(found[1])
        return bits % 2**14 + 1, bits // 2**14 % 2**14 + 1
    if found := _LOSSY.match(image):
        return _little(found[1]) % 2**14, _little(found[2]) % 2**14  # above these bits is a scale, which is unused
    return None


def _gif(image: bytes) -> _Size | None:
    """The size of the screen, or of the first frame if that is larger: then browsers enlarge the screen."""
    found = _SCREEN.match(image)
    if found is None:
        return None
    width, height, flags = map(_little, found.groups())
    colours = 3 * 2 ** (flags % 8 + 1) if flags >= 0x80 else 0
    if frame := _first_frame().match(image, found.end() + colours):
        left, top, its_width, its_height = map(_little, frame.groups())
        return max(width, left + its_width), max(height, top + its_height)
    return width, height


@cache  # compiled on first use, because it takes 20 ms
def _first_frame() -> re.Pattern[bytes]:
    """The first frame after any extensions, each of which has blocks that begin with their lengths, and then a 0."""
    blocks = b"|".join(rb"\x%02x.{%d}" % (length, length) for length in range(1, 256))
    return re.compile(rb"(?:!.(?:\0!.|%b)*+\0)?,(..)(..)(..)(..)" % blocks, re.DOTALL)


def _big(number: bytes) -> int:
    return int.from_bytes(number, "big")


def _little(number: bytes) -> int:
    return int.from_bytes(number, "little")


class Format(NamedTuple):
    """An image format: its media type, the extension in its URL, and the signature that it begins with.

    `size` returns the width and height of an image, or None where they can't be read.
    """

    media_type: str
    extension: str
    signature: re.Pattern[bytes]
    size: Callable[[bytes], _Size | None]


FORMATS = (
    Format("image/jpeg", "jpg", re.compile(rb"\xff\xd8\xff"), _jpeg),
    Format("image/png", "png", re.compile(rb"\x89PNG\r\n\x1a\n"), _png),
    Format("image/webp", "webp", re.compile(rb"RIFF.{4}WEBP", re.DOTALL), _webp),
    Format("image/gif", "gif", re.compile(rb"GIF8[79]a"), _gif),
)
AVATAR_TYPES = tuple(image.media_type for image in FORMATS)
AVATAR_TOO_LARGE = "avatar must be at most 1 MB"

_BY_MEDIA_TYPE = {image.media_type: image for image in FORMATS}
_BY_MEDIA_TYPE["image/jpg"] = _BY_MEDIA_TYPE["image/jpeg"]  # isn't a registered type, but some clients send it
_BY_EXTENSION = {image.extension: image for image in FORMATS}


def check_avatar(content_type: str, image: bytes) -> str:
    """The extension for an image of this Content-Type; raises BadRequest for a wrong type, signature or size."""
    declared = _BY_MEDIA_TYPE.get(content_type.partition(";")[0].strip(" \t").lower())
    if declared is None:
        raise BadRequest("avatar_type", "avatar must be image/jpeg, image/png, image/webp or image/gif")
    if not declared.signature.match(image):
        raise BadRequest("avatar_signature", f"avatar does not begin like {declared.media_type}")
    width, height = declared.size(image) or (0, 0)
    if max(width, height) > PIXELS_MAX:
        text = f"avatar must have at most {PIXELS_MAX:,} pixels a side, not {width:,} x {height:,}"
        raise BadRequest("avatar_too_large", text)
    return declared.extension


def media_type(extension: str) -> str | None:
    """The media type for an extension; None for an unknown one."""
    known = _BY_EXTENSION.get(extension)
    return None if known is None else known.media_type
