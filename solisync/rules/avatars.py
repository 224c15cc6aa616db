"""Avatars: the accepted image formats (docs/protocol.md "The player").

Only the first bytes of an image are checked; images are never decoded. A file may therefore be broken, or not an image.
The policy of its response stops browsers from running anything in it (docs/security.md "Uploads").
"""

import re
from typing import NamedTuple

from ..errors import BadRequest


class Format(NamedTuple):
    """An image format: its media type, the extension in its URL, and the signature that it begins with."""

    media_type: str
    extension: str
    signature: re.Pattern[bytes]


FORMATS = (
    Format("image/jpeg", "jpg", re.compile(rb"\xff\xd8\xff")),
    Format("image/png", "png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    Format("image/webp", "webp", re.compile(rb"RIFF.{4}WEBP", re.DOTALL)),
    Format("image/gif", "gif", re.compile(rb"GIF8[79]a")),
)
AVATAR_TYPES = tuple(image.media_type for image in FORMATS)
AVATAR_TOO_LARGE = "avatar must be at most 1 MB"

_BY_MEDIA_TYPE = {image.media_type: image for image in FORMATS}
_BY_MEDIA_TYPE["image/jpg"] = _BY_MEDIA_TYPE["image/jpeg"]  # isn't a registered type, but some clients send it
_BY_EXTENSION = {image.extension: image for image in FORMATS}


def check_avatar(content_type: str, image: bytes) -> str:
    """The extension for an image of this Content-Type; raises BadRequest if the type or the signature is wrong."""
    declared = _BY_MEDIA_TYPE.get(content_type.partition(";")[0].strip(" \t").lower())
    if declared is None:
        raise BadRequest("avatar_type", "avatar must be image/jpeg, image/png, image/webp or image/gif")
    if not declared.signature.match(image):
        raise BadRequest("avatar_signature", f"avatar does not begin like {declared.media_type}")
    return declared.extension


def media_type(extension: str) -> str | None:
    """The media type for an extension; None for an unknown one."""
    known = _BY_EXTENSION.get(extension)
    return None if known is None else known.media_type
