"""Avatars: which images are accepted, and what they are called (contract §5).

An image is known by its first bytes and is never decoded: what is served as one is sandboxed instead, so that no
browser takes it for anything else.
"""

import re
from typing import NamedTuple

from ..errors import BadRequest


class Format(NamedTuple):
    """An image format: how it is declared, what its URL ends with, and how its bytes begin."""

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
_BY_MEDIA_TYPE["image/jpg"] = _BY_MEDIA_TYPE["image/jpeg"]  # what some clients call it
_BY_EXTENSION = {image.extension: image for image in FORMATS}


def check_avatar(content_type: str, image: bytes) -> str:
    """The extension of an image that was declared as `content_type`; raises BadRequest when it can't be that."""
    declared = _BY_MEDIA_TYPE.get(content_type.partition(";")[0].strip(" \t").lower())
    if declared is None:
        raise BadRequest("avatar must be image/jpeg, image/png, image/webp or image/gif")
    if not declared.signature.match(image):
        raise BadRequest(f"avatar does not begin like {declared.media_type}")
    return declared.extension


def media_type(extension: str) -> str | None:
    """The media type of avatars with this extension, or None when there are none."""
    known = _BY_EXTENSION.get(extension)
    return None if known is None else known.media_type
