"""What the health routes answer (docs/protocol.md "The service")."""

from typing import Annotated

from msgspec import Meta, Struct


class Features(Struct, frozen=True, kw_only=True):
    """What depends on the operator's settings; a feature that is absent is one of a later version."""

    pages: Annotated[bool, Meta(description="whether there are pages for players, such as /replays/{id}")]
    public_avatars: Annotated[bool, Meta(description="whether avatars need no token")]


class Alive(Struct, frozen=True):
    """The process answers."""

    version: str
    features: Features
    status: str = "ok"


class Ready(Struct, frozen=True):
    """The process can do its work."""

    status: str = "ready"
