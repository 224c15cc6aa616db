"""The export of everything that is stored about a player, over HTTP (docs/protocol.md "The player")."""

from dataclasses import dataclass
from typing import ClassVar

from ...access.rate_limit import EXPORT
from ...errors import existing
from ...players.export_document import export_document
from ...postgres.database import Database
from ...process.audit import audit
from ...rules.export import Exported, filename
from ...storage.players import export
from ...storage.players.export import ExportStart
from ..route import get
from ..wire.reply import Reply


@dataclass(frozen=True, kw_only=True)
class Export:
    """Gives players everything that is stored about them."""

    tag: ClassVar[str] = "accounts"

    database: Database

    @get(
        "/api/me/export",
        summary="Return everything that is stored about the player",
        protected=True,
        limit=EXPORT,
        answer=Exported,
        errors=("user_not_found",),
    )
    async def export(self, *, player: str, head_only: bool) -> Reply:
        """Return the document as a download. The small parts are read first, the rest as the client reads it."""
        start = existing(await self.database.run(export.begin, player))
        if not head_only:
            audit("exported", user_id=player)
        return download(self.database, start)


def download(database: Database, start: ExportStart) -> Reply:
    """The reply that makes a browser save the document."""
    disposition = f'attachment; filename="{filename(start.account.username)}"'
    return Reply(pieces=export_document(database.run, start), headers={"Content-Disposition": disposition})
