"""The subcommand that restores a player's progress from an export."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Raw, Struct, field

from ..acts import players as acts
from ..errors import BadRequest, FatalError
from ..rules.documents import read_pushed
from ..rules.games import CountedGame
from .task import Task, player


class _Account(Struct, frozen=True):
    id: str
    username: str


class _Export(Struct, frozen=True):
    """What a restore needs of an export."""

    exported_at: datetime
    account: _Account
    progress: Raw
    games: list[CountedGame] = field(default_factory=list)


async def restore(task: Task) -> None:
    """Merge the progress of an export into a player's; nothing is lowered."""
    file = Path(task.chosen.file)
    export = _read(file)
    try:
        exported = read_pushed(bytes(export.progress)).document
    except BadRequest as error:
        raise FatalError(f"solisync: {file}: {error}") from None
    async with task.acting() as acting:
        found = await acting.database.run(player, task.chosen.user)
        if export.account.id != found.id and not task.chosen.other_account:
            raise FatalError(
                f"solisync: {file} is the export of another account, '{export.account.username}' with the id"
                f" {export.account.id}: --other-account merges it all the same"
            )
        done = await acting.perform(
            acts.restore, found.id, exported=exported, games=export.games, now=datetime.now(UTC)
        )
    text = f"'{found.username}' now has {done.result:,} games" if done.changed else f"'{found.username}' had all of it"
    task.output.say(text, id=found.id, username=found.username, changed=done.changed, games=done.result)


def _read(file: Path) -> _Export:
    try:
        export = msgspec.json.decode(file.read_bytes(), type=_Export)
    except OSError as error:
        raise FatalError(f"solisync: can't read {file}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FatalError(f"solisync: {file} is not an export of solisync: {error}") from None
    if bytes(export.progress) == b"null":
        raise FatalError(f"solisync: {file} has no progress: the player had pushed nothing")
    return export
