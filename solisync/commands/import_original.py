"""`solisync import-original`: import everything from an original server (docs/moving-in.md)."""

from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from ..errors import FatalError
from ..moving_in.importing import Import
from ..moving_in.sqlite_file import OriginalFile
from ..moving_in.tally import Tally
from .output import Column
from .task import Task

COLUMNS = (
    Column("table", 16),
    *(Column(name, 10, right=True) for name in ("read", "imported", "present", "refused", "warnings")),
)


async def bring(task: Task) -> None:
    """Import the file and the directory of avatars; a dry run does everything except write."""
    chosen = task.chosen
    avatars = None if chosen.avatars is None else Path(chosen.avatars)
    if avatars is not None and not avatars.is_dir():
        raise FatalError(f"solisync: {avatars} is not a directory")
    original = await OriginalFile.open(Path(chosen.file), task.reactor, task.progress.report)

    def say(text: str, **facts: object) -> None:
        task.progress.clear()
        task.output.say(text, **facts)

    tally = Tally(say)
    with closing(original):
        async with task.database(create=not chosen.dry_run) as database:
            await Import(
                database=database,
                original=original,
                avatars=avatars,
                tally=tally,
                report=task.progress.report,
                dry=chosen.dry_run,
            ).run()
    if tally.spent:
        text = f"sessions ended here, because the original server refreshed them after their import: {tally.spent:,}"
        say(text, spent=tally.spent)
    task.progress.clear()
    write = task.output.table(COLUMNS)
    for line in tally.lines:
        write(asdict(line))
    if tally.refused and not chosen.allow_refused:
        rows = "1 row was" if tally.refused == 1 else f"{tally.refused:,} rows were"
        raise FatalError(f"solisync: {rows} refused; to exit with status 0 anyway, use --allow-refused")
