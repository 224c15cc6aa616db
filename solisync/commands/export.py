"""`solisync users export`: the document that players get from the service as well."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..postgres.transaction import Statements
from ..storage import export as storage
from .task import Task, no_such_player, player

T = TypeVar("T")


async def export(task: Task) -> None:
    """Write all that is stored about a player, as one JSON document."""

    async def write(transaction: Statements) -> None:
        async def read(work: Callable[..., Awaitable[T]], *arguments: Any) -> T:
            return await work(transaction, *arguments)

        found = await player(transaction, task.chosen.user)
        beginning = await storage.begin(transaction, found.id)
        if beginning is None:
            raise no_such_player(task.chosen.user)
        async for part in storage.document(read, found.id, beginning):
            task.output.raw(part.decode())

    await task.reading(write)
