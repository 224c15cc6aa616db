"""`solisync status`: versions, the database, whether a service uses it, and the number of rows in it."""

from dataclasses import asdict

from .. import __version__
from ..diagnosis import introspection
from ..postgres.migrate import load_migrations
from ..postgres.transaction import Statements
from ..rules.texts import bytes_shown
from ..storage import checks, counts, schema
from . import running
from .task import Task


async def show(task: Task) -> None:
    """Show the status without changing anything, the schema included."""
    settings = task.settings
    async with running.connection(settings, task.reactor) as connection:
        statements = Statements(connection)
        database = await introspection.database(connection)
        service = await introspection.service_connections(connection)
        number, latest = await schema.number(statements), load_migrations()[-1].number
        facts: dict[str, object] = {
            "version": __version__,
            "schema": number,
            "schema_of_this_version": latest,
            "database": "embedded" if settings.database_url is None else "configured",
            "data_dir": str(settings.data_dir) if settings.database_url is None else None,
            "server_version": database.server_version,
            "database_name": database.name,
            "database_bytes": database.size if task.output.json else bytes_shown(database.size),
            "service_running": service > 0,
            "service_connections": service,
        }
        if number >= latest:  # else there may be no such tables
            facts |= asdict(await counts.everything(statements))
            waiting = await checks.waiting(statements)
            facts |= {
                "checks_waiting": waiting.literal,
                "searches_waiting": waiting.search,
                "old_checks_waiting": waiting.old,
                "longest_wait_seconds": round(waiting.oldest_seconds),
            }
        task.output.facts(facts)
