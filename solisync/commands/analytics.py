"""`solisync analytics`: export events for other programs."""

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import UTC, datetime
from operator import attrgetter

import msgspec

from ..storage import analytics
from ..storage.analytics import StoredEvent
from ..storage.paging import FIRST_TIME
from .output import to_json
from .task import Task

END_OF_TIME = datetime(9999, 12, 30, tzinfo=UTC)
FIELDS = tuple(field.name for field in fields(StoredEvent))
_values = attrgetter(*FIELDS)


async def export(task: Task) -> None:
    """Write the events in the order of their arrival."""
    since, until = task.chosen.since or FIRST_TIME, task.chosen.until or END_OF_TIME
    count = 0
    async with task.connection() as statements:
        encode = _csv(task) if task.chosen.format == "csv" else _jsonl(task)
        async for page in analytics.received(statements, since=since, until=until):
            encode(page)
            count += len(page)
            if not task.output.terminal:
                task.progress.report(f"{count:,} events, up to {page[-1].received_at:%Y-%m-%d %H:%M}")
        task.progress.end(f"{count:,} events")


def _json_of(event: StoredEvent) -> str:
    """Return an event as a JSON object, with its payload unchanged to the byte."""
    return to_json(dict(zip(FIELDS, _values(event), strict=True)) | {"payload": msgspec.Raw(event.payload.encode())})


def _jsonl(task: Task) -> Callable[[list[StoredEvent]], None]:
    return lambda page: task.output.raw("".join(_in_one_line(_json_of(event)) for event in page))


def _csv(task: Task) -> Callable[[list[StoredEvent]], None]:
    def write(rows: Iterable[Iterable[object]]) -> None:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(rows)
        task.output.text(buffer.getvalue())

    def cells(event: StoredEvent) -> list[object]:
        return [to_json(value)[1:-1] if isinstance(value, datetime) else value for value in _values(event)]

    write([FIELDS])
    return lambda page: write(map(cells, page))


def _in_one_line(json: str) -> str:
    """Return JSON in one line. Spaces replace line ends, which JSON allows only between tokens."""
    return json.replace("\n", " ").replace("\r", " ") + "\n"
