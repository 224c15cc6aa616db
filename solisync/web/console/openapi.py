"""The OpenAPI document of the console's routes."""

from collections.abc import Callable

from ..resources.openapi import Interface, OpenApi
from ..route import Route
from ..wire.reply import Reply
from .route import get

INTERFACE = Interface(
    "solisync administration",
    "Administration of players and their data, on a listener of its own.",
    {
        "session": "Sessions of admins",
        "players": "Players, and what is done to them",
        "replays": "Replays, and what is done to them",
        "service": "What is new, what was done, and how the service is",
        "docs": "This interface",
    },
    ("session", {"type": "apiKey", "in": "cookie", "name": "solisync-admin"}),
)


class ConsoleOpenApi(OpenApi):
    """Serves the document of the console to admins."""

    def __init__(self, routes: Callable[[], tuple[Route, ...]]) -> None:
        super().__init__(routes, INTERFACE)

    @get("/openapi.json", name="openapi", summary="This interface")
    async def document(self) -> Reply:
        return await super().document()
