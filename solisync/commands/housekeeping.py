"""`solisync housekeeping`: run its jobs now, or set the clock by which they delete."""

from datetime import UTC, datetime

from ..diagnosis import introspection
from ..errors import DatabaseError, FatalError
from ..events.notices import command_notices
from ..housekeeping import JOBS, Housekeeping
from ..postgres.transaction import Statements
from ..rules.texts import span_shown
from ..settings.settings import ServingSettings
from ..settings.table import is_given
from ..storage import retention
from . import running
from .output import Column
from .task import Task

CLOCKS_SECONDS = 60.0  # the most by which two right clocks differ

COLUMNS = (Column("at", 19), Column("job", 28), Column("rows", 9, right=True), Column("note", 40))


async def keep_house(task: Task) -> None:
    """Run all jobs once, or with --catch-up set the retention clock; raises FatalError if a job failed."""
    if task.chosen.catch_up:
        await _catch_up(task)
        return
    settings = ServingSettings.from_environ(task.with_some_secret(), task.options)
    write, failed = task.output.table(COLUMNS), []

    def report(job: str, rows: int | DatabaseError) -> None:
        error = str(rows) if isinstance(rows, DatabaseError) else None
        if error is not None:
            failed.append(job)
        write({"at": datetime.now(UTC), "job": job, "rows": None if error else rows, "note": error})

    names = []
    for job in JOBS:
        if job.setting is None or is_given(job.setting, task.environ, task.options):
            names.append(job.name)
        else:  # the service may run with another value than the default
            left = f"left to the service, because {job.setting} is not set here"
            write({"at": None, "job": job.name, "rows": None, "note": left})
    async with task.database() as database:
        housekeeping = Housekeeping(
            database=database,
            publish=command_notices(database),
            reactor=task.reactor,
            analytics_days=settings.analytics_days,
            history_days=settings.history_days,
            guest_days=settings.guest_days,
            limits=settings.limits,
        )
        await housekeeping.prune(names, report)
    if failed:
        raise FatalError(f"solisync: {', '.join(failed)} failed")


async def _catch_up(task: Task) -> None:
    async with running.connection(task.settings, task.reactor) as connection:
        statements = Statements(connection)
        await running.check_schema(statements)
        theirs = await introspection.clock(connection)
        apart = abs((datetime.now(UTC) - theirs).total_seconds())
        if apart > CLOCKS_SECONDS:
            both = "the clocks of this machine and of the database"
            raise FatalError(f"solisync: {both} are {span_shown(apart)} apart: set them first")
        behind = await retention.catch_up(statements)
    task.output.say(f"moved the retention clock by {span_shown(max(behind, 0))}", moved_seconds=max(behind, 0))
