"""`solisync users export`: the document that players get from the service as well."""

from ..export_document import export_document
from ..storage.export import begin
from .task import Task, no_such_player, player


async def export(task: Task) -> None:
    """Write all that is stored about a player, as one JSON document."""
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        start = await begin(statements, found.id)
        if start is None:
            raise no_such_player(task.chosen.user)
        async for part in export_document(lambda work, *arguments: work(statements, *arguments), start):
            task.output.raw(part.decode())
