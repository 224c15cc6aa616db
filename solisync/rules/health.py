"""What the health routes answer (docs/protocol.md "The service")."""

from msgspec import Struct


class Alive(Struct, frozen=True):
    """The process answers."""

    version: str
    status: str = "ok"


class Ready(Struct, frozen=True):
    """The process can do its work."""

    status: str = "ready"
