"""Output of commands: no control sequences for terminals, and data that programs can read."""

import io
import json
import signal
import tempfile
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.commands.output import Column, Output, ProgressLine, harmless, shown
from solisync.rules.texts import bytes_shown
from tests.harness.concurrency import wait_for
from tests.harness.constants import BIN, PATIENCE
from tests.harness.entry_points import BEGIN, SOLISYNC
from tests.harness.forking import start_process
from tests.harness.postgres import connect, lock_waiters
from tests.harness.processes import clean_environment, run, terminal
from tests.harness.strategies import costly, texts

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: st.lists(children) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), children),
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@given(texts())
def test_text_for_people_is_one_printable_line(text):
    """Control characters are escaped; plain text is unchanged."""
    assert harmless(text).isprintable()
    assert shown(text).isprintable()
    if text.isprintable():
        assert harmless(text) == text


@costly(100)
@given(JSON)
def test_json_on_a_terminal_is_equivalent_ascii(value):
    """The escapes cover characters that JSON needn't escape, and white space between values."""
    stream = Terminal()
    for raw in (json.dumps(value, ensure_ascii=False), json.dumps(value, ensure_ascii=False, indent="\r\t")):
        stream.seek(0)
        stream.truncate()
        Output(stream, json=True).raw(raw)
        written = stream.getvalue()
        assert written.isascii()
        assert written.replace("\n", "").isprintable()
        assert json.loads(written) == value


@costly(100)
@given(JSON)
def test_piped_json_is_unchanged_to_the_byte(value):
    stream = io.StringIO()
    raw = json.dumps(value, ensure_ascii=False, indent=1)
    Output(stream, json=True).raw(raw)
    assert stream.getvalue() == raw


def test_table_columns_line_up():
    """Columns have headings, left or right; only programs get the fields without a column."""
    stream = io.StringIO()
    write = Output(stream, json=False).table((Column("name", 6), Column("count", 5, right=True)))
    write({"name": "ann", "count": 7, "more": "x"})
    write({"name": None, "count": True})
    assert stream.getvalue() == "NAME    COUNT\nann         7\n-         yes\n"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (2**20, "1.0 MiB"), (2**40, "1024.0 GiB")]
)
def test_sizes_have_a_unit(count, text):
    """The units go from bytes to GiB."""
    assert bytes_shown(count) == text


def test_progress_is_shown_on_terminals_or_with_the_option():
    """On a terminal, progress stays on one line."""
    silent, asked, terminal = io.StringIO(), io.StringIO(), Terminal()
    for stream, wanted in ((silent, False), (asked, True), (terminal, False)):
        progress = ProgressLine(stream, wanted=wanted)
        progress.report("one")
        progress.report("two")  # too soon
        progress.report("three", now=True)
        progress.clear()
    assert silent.getvalue() == ""
    assert asked.getvalue() == "one\nthree\n"
    assert terminal.getvalue() == "\r\x1b[Kone\r\x1b[Kthree\r\x1b[K"


# Commands as processes.


@pytest.mark.parametrize(
    "words", [["users", "delete", "ann"], ["sessions", "revoke", "--everyone"], ["replays", "delete", "x"]]
)
def test_destructive_command_needs_yes_without_a_terminal(server, words):
    """The usage error comes before the command looks at anything."""
    done = run(*SOLISYNC, *words, stdin=b"y\n", DATABASE_URL=server.dsn)
    assert (done.status, done.out) == (2, [])
    assert done.err == ["solisync: can't ask for confirmation without a terminal: use --yes"]


@pytest.mark.parametrize(
    ("answer", "status"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1), (b"\x04", 1), (b"\x03", 1)], ids=repr
)
async def test_destructive_command_asks_on_a_terminal(server, launch, answer, status):
    """Any answer but yes, the end of input and Ctrl-C change nothing."""
    await server.player("ann")
    question = "Delete 'ann' and all their data? [y/N] "
    with terminal() as (ours, theirs):
        words = "foreground", *SOLISYNC, "users", "delete", "ann"
        command = launch(*BEGIN, *words, stdin=theirs, DATABASE_URL=server.dsn)
        wait_for(lambda: command.log == question)
        ours.write(answer)
        assert command.popen.wait(PATIENCE) == status
    says = "deleted 'ann' and all their data" if status == 0 else "nothing was changed"
    assert command.log.removeprefix(question).strip() == says
    assert server.sql("SELECT count(*) FROM users") == [(status,)]


def test_failure_is_one_line(server):
    """The exit status is 1. Names are escaped in errors too, and a full disk causes no traceback."""
    done = run(*SOLISYNC, "users", "show", "no\x1b[31m\nbody", DATABASE_URL=server.dsn)
    assert (done.status, done.out, done.err) == (1, [], ["user 'no\\x1b[31m body' not found"])
    with open("/dev/full", "wb") as full, tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as err:
        variables = clean_environment(DATABASE_URL=server.dsn)
        process = start_process((*SOLISYNC, "users", "list"), variables, given, full, err)
        assert process.wait(PATIENCE) == 1
        err.seek(0)
        assert err.read() == b"solisync: No space left on device\n"


def test_names_are_written_in_utf_8_in_any_locale(server):
    server.sql("INSERT INTO users VALUES (gen_random_uuid(), 'J\u00fcrgen', 'x', now())")
    done = run(*SOLISYNC, "users", "list", DATABASE_URL=server.dsn, PYTHONIOENCODING="ascii")
    assert done.status == 0
    assert "J\u00fcrgen" in done.out[1]


@pytest.mark.parametrize("words", [["users", "delete", "ann", "--yes"], ["users", "show", "ann"]])
async def test_interrupted_command_ends_in_one_line(server, launch, words):
    """Ctrl-C changes nothing; a change that has begun gets its time, here until it gives up waiting."""
    await server.player("ann")
    with closing(connect(server.dsn)) as blocking, blocking.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
        command = launch(*SOLISYNC, *words, DATABASE_URL=server.dsn)
        wait_for(lambda: lock_waiters(server.dsn))
        assert command.stop(signal.SIGINT) == 1
        assert command.log == "interrupted\n"
    assert server.sql("SELECT count(*) FROM users") == [(1,)]


@pytest.mark.parametrize("command", ["solisync users delete ann", "solisync-reset-password ann"])
def test_command_without_standard_input_changes_nothing(server, command):
    """A closed standard input counts as empty: the command prints one line, without a traceback."""
    done = run("sh", "-c", f"exec {BIN}/{command} <&-", DATABASE_URL=server.dsn)
    assert done.status != 0
    assert len(done.err) == 1


def test_command_without_any_standard_stream_works(server):
    """No other file gets the numbers of the closed streams."""
    done = run("sh", "-c", f"exec {BIN}/solisync users list <&- >&- 2>&-", DATABASE_URL=server.dsn)
    assert (done.status, done.out, done.err) == (0, [], [])
