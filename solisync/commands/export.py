"""`solisync users export`: the document that players get from the service as well."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..export_document import export_document
from ..storage.export import begin
from .task import Task, no_such_player, player

T = TypeVar("T")


async def export(task: Task) -> None:
    """Write all that is stored about a player, as one JSON document."""
    async with task.connection() as statements:

        async def read(work: Callable[..., Awaitable[T]], *arguments: Any) -> T:
            return await work(statements, *arguments)

        found = await player(statements, task.chosen.user)
        start = await begin(statements, found.id)
        if start is None:
            raise no_such_player(task.chosen.user)
        async for part in export_document(read, start):
            task.output.raw(part.decode())
