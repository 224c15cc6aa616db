"""`solisync users export`: the document that players get from the service as well."""

from ..acts.act import Why
from ..players.export_document import export_document
from ..process.audit import audit
from ..storage.acts import record_export
from ..storage.export import begin
from .task import Task, no_such_player, player


async def export(task: Task) -> None:
    """Write all that is stored about a player, as one JSON document; that it was done is recorded before."""
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        start = await begin(statements, found.id)
        if start is None:
            raise no_such_player(task.chosen.user)
        why = Why(task.chosen.reason, task.chosen.note)
        await record_export(statements, found.id, by=task.actor, reason=why.reason, note=why.note)
        audit("exported", user_id=found.id)
        async for part in export_document(lambda work, *arguments: work(statements, *arguments), start):
            task.output.raw(part.decode())
