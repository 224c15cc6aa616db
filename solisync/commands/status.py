"""`solisync status`: versions, the database, and the number of rows in it."""

from dataclasses import asdict

from .. import __version__
from ..postgres.database import Transaction
from ..postgres.migrate import load_migrations
from ..postgres.session import Session
from ..storage import administration
from .output import bytes_shown
from .running import schema_number, with_session
from .task import Task

_SERVER = "SELECT current_setting('server_version'), pg_database_size(current_database()), current_database()"


async def show(task: Task) -> None:
    """Show the status without changing anything, the schema included."""
    settings = task.settings

    async def look(session: Session) -> None:
        ((server, size, name),) = await session.execute(_SERVER)
        number, latest = await schema_number(session), load_migrations()[-1].number
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
            facts |= asdict(await administration.counts(Transaction(session)))
        task.output.facts(facts)

    await with_session(settings, task.reactor, look)
