"""`solisync analytics export`: each event once, in order, as JSON or CSV, within the limits asked for."""

import csv
import io
import json
import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from solisync.commands.analytics import END_OF_TIME, FIELDS
from solisync.commands.main import command_parser
from solisync.postgres.opening import open_connection
from solisync.postgres.transaction import Statements
from solisync.storage.analytics import received
from solisync.storage.paging import FIRST_TIME
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import SOLISYNC
from tests.harness.postgres import run_sql, truncate
from tests.harness.processes import clean_environment

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
PAYLOAD = '{"text": "a, \\"b\\"\u00e9\u009b",\r\n "n": 1e400, "n": 2}'


@pytest.fixture
def events(shared_dsn):
    """Store events that were received at these times; return their ids in the order of the export."""

    def store(*moments):
        truncate(shared_dsn)
        run_sql(shared_dsn, "INSERT INTO analytics_names (name, seen_on) VALUES ('ann', now())")
        rows = []
        for number, moment in enumerate(moments):
            # every other one is nameless; ids that begin with 0 and f are the ends of their order
            event_id = f"{'f' if number % 2 else '0'}{number:07}-0000-4000-8000-000000000000"
            name = None if number % 2 else run_sql(shared_dsn, "SELECT id FROM analytics_names")[0][0]
            row = (event_id, "s1", name, "game_end", PAYLOAD, moment, moment)
            run_sql(shared_dsn, "INSERT INTO analytics_events VALUES (%s, %s, %s, %s, %s, %s, %s)", row)
            rows.append((moment, event_id))
        return [event_id for _, event_id in sorted(rows)]

    return store


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
async def test_each_event_is_exported_once_in_order(reactor, server, events, page):
    """Neither the page size nor events with equal times change the order."""
    ids = events(NOON, NOON, NOON, NOON + timedelta(microseconds=1), NOON - timedelta(days=400), NOON)
    with closing(await open_connection(reactor, server.dsn)) as connection:
        pages = received(Statements(connection), since=FIRST_TIME, until=END_OF_TIME, size=page)
        assert [event.id async for found in pages for event in found] == ids


async def test_json_and_csv_have_the_same_fields(administrate, events):
    """Both formats leave the payload unchanged."""
    events(NOON, NOON)
    lines = (await administrate("analytics", "export")).split("\n")[:-1]
    (named, nameless) = [json.loads(line, parse_float=str) for line in lines]
    assert [*named] == [*FIELDS]
    assert named["payload"] == json.loads(PAYLOAD, parse_float=str)
    assert (named["name"], nameless["name"]) == ("ann", None)
    assert named["received_at"] == "2026-11-20T12:00:00Z"
    table = [*csv.DictReader(io.StringIO(await administrate("analytics", "export", "--format", "csv"), newline=""))]
    assert [row["payload"] for row in table] == [PAYLOAD, PAYLOAD]
    assert [row["name"] for row in table] == ["ann", ""]
    assert {name: table[0][name] for name in FIELDS[:-1]} == {name: named[name] for name in FIELDS[:-1]}


async def test_csv_without_events_has_headings(administrate, events):
    """A program that reads CSV finds its columns."""
    events()
    assert await administrate("analytics", "export") == ""
    assert (await administrate("analytics", "export", "--format", "csv")).lines == [",".join(FIELDS)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--since", "2026-11-20"], [1, 2, 3]),
        (["--since", "2026-11-20T12:00:00Z"], [2, 3]),
        (["--since", "2026-11-20T14:00:00.000001+02:00"], [3]),
        (["--until", "2026-11-20"], [0]),
        (["--until", "2026-11-21"], [0, 1, 2, 3]),
        (["--until", "2026-11-20T12:00:00Z"], [0, 1]),
        (["--since", "2026-11-20", "--until", "2026-11-20T12:00:00Z"], [1]),
        (["--since", "2026-11-21", "--until", "2026-11-20"], []),
    ],
)
async def test_since_is_included_and_until_is_not(administrate, events, words, expected):
    """Days begin at midnight in UTC."""
    midnight = NOON - timedelta(hours=12)
    ids = events(midnight - timedelta(microseconds=1), midnight, NOON, NOON + timedelta(microseconds=1))
    done = await administrate("analytics", "export", *words)
    assert [record["id"] for record in done.records] == [ids[index] for index in expected]


@pytest.mark.parametrize(
    "text",
    [
        "Yesterday",
        "7",
        "d",
        "-1d",
        "7y",
        "7 d",
        "٣d",
        "2026-13-01",
        "2026-11-20T12:00:00",
        "9999-12-31",
        "0001-01-01",
        "",
    ],
)
def test_invalid_date_is_a_usage_error(text):
    """A time without its time zone is one, too."""
    with pytest.raises(SystemExit, match="2"):
        command_parser().parse_args(["analytics", "export", "--since", text])


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_time_may_be_relative_to_now(text, ago):
    """The units are minutes, hours, days and weeks."""
    before = datetime.now(UTC) - ago
    since = command_parser().parse_args(["analytics", "export", "--since", text]).since
    assert before <= since <= datetime.now(UTC) - ago


def test_today_and_yesterday_begin_at_midnight_utc():
    parse = command_parser().parse_args
    today, yesterday = (parse(["analytics", "export", "--since", text]).since for text in ("today", "yesterday"))
    assert (today.hour, today.minute, today.second, today.microsecond, today.tzinfo) == (0, 0, 0, 0, UTC)
    assert today - yesterday == timedelta(days=1)
    assert timedelta() <= datetime.now(UTC) - today < timedelta(days=2)


async def test_progress_option_writes_to_standard_error(administrate, events):
    """Standard output stays free for the export."""
    events(NOON, NOON)
    assert (await administrate("analytics", "export")).progress == []
    assert (await administrate("analytics", "export", "--progress")).progress[-1] == "2 events"


def test_closed_pipe_ends_the_export_silently(shared_dsn, events):
    """`| head` is no error."""
    events(NOON)
    run_sql(
        shared_dsn,
        "INSERT INTO analytics_events SELECT gen_random_uuid(), 's', NULL, 'e', '{}', now(), now()"
        " FROM generate_series(1, 5000)",
    )
    for words in (["analytics", "export"], ["analytics", "export", "--format", "csv"]):
        done = subprocess.run(
            ["sh", "-c", '"$@" | head -n 1', "sh", *map(str, SOLISYNC), *words],
            capture_output=True,
            env=clean_environment(DATABASE_URL=shared_dsn),
            timeout=PATIENCE,
        )
        assert (done.returncode, done.stderr, done.stdout.count(b"\n")) == (0, b"", 1)
