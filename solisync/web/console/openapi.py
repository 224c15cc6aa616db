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
        "players": "Players, and acts on them",
        "replays": "Replays, and acts on them",
        "service": "The state of the service, new content, and the record of acts",
        "docs": "The description of this API",
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
