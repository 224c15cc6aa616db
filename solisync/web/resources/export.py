"""The export of everything that is stored about a player, over HTTP (docs/protocol.md "The player")."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import ClassVar

from ...access.rate_limit import EXPORT
from ...errors import existing
from ...players.export_document import export_document
from ...postgres.database import Database
from ...process.audit import audit
from ...rules.export import Exported, filename
from ...storage.players import accounts, export
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
        if head_only:
            profile = existing(await self.database.run(accounts.profile, player))
            return _download(profile.username, _nothing())
        start = existing(await self.database.run(export.begin, player))
        audit("exported", user_id=player)
        return _download(start.account.username, export_document(self.database.run, start))


def _download(username: str | None, pieces: AsyncGenerator[bytes, None]) -> Reply:
    disposition = f'attachment; filename="{filename(username)}"'
    return Reply(pieces=pieces, headers={"Content-Disposition": disposition})


async def _nothing() -> AsyncGenerator[bytes, None]:
    """The body of a reply whose headers alone are sent."""
    return
    yield
