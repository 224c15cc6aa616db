"""UUIDs: spelled in any of the ways of RFC 4122 in a body, and in one way only in a path (contract §0)."""

import re
from uuid import UUID

_HYPHENATED = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_UUID = re.compile(rf"(?:urn:uuid:)?({_HYPHENATED})|\{{({_HYPHENATED})\}}|([0-9a-f]{{32}})", re.IGNORECASE | re.ASCII)
_CANONICAL = re.compile(_HYPHENATED)


def canonical_uuid(text: str) -> str | None:
    """A UUID in whatever spelling (RFC 4122 §3, braces, bare digits) as the service spells it; None for other text."""
    match = _UUID.fullmatch(text)
    return str(UUID(match[1] or match[2] or match[3])) if match else None


def is_id(text: str) -> bool:
    """Whether `text` is a UUID as the service spells them, so that every thing has one address."""
    return _CANONICAL.fullmatch(text) is not None
