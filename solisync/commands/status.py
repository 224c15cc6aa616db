"""`solisync status`: what is installed, which database it uses, and how much is in there."""

from dataclasses import asdict

from .. import __version__
from ..postgres.connection import Connection
from ..postgres.migrate import load_migrations
from ..postgres.transaction import Transaction
from ..storage import administration
from .output import bytes_shown
from .running import schema_number, with_connection
from .task import Task

_SERVER = "SELECT current_setting('server_version'), pg_database_size(current_database()), current_database()"


async def show(task: Task) -> None:
    """Look without changing anything, not even the schema."""
    settings = task.settings

    async def look(connection: Connection) -> None:
        ((server, size, name),) = await connection.execute(_SERVER)
        number, latest = await schema_number(connection), load_migrations()[-1].number
        facts: dict[str, object] = {
            "version": __version__,
            "schema": number,
            "schema_of_this_version": latest,
            "database": "embedded" if settings.database_url is None else "configured",
            "data_dir": str(settings.data_dir) if settings.database_url is None else None,
            "server_version": server,
            "database_name": name,
            "database_bytes": size if task.output.json else bytes_shown(size),
        }
        if number >= latest:  # else there may be no such tables
            facts |= asdict(await administration.counts(Transaction(connection)))
        task.output.facts(facts)

    await with_connection(settings, task.reactor, look)
