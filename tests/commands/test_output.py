"""What commands write: nothing that a terminal obeys, and nothing that a program can't read."""

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
def test_text_for_people_is_printable(text):
    """Whatever it was, it is one line without a character that a terminal obeys; and plain text is as it was."""
    assert harmless(text).isprintable()
    assert shown(text).isprintable()
    if text.isprintable():
        assert harmless(text) == text


@costly(100)
@given(JSON)
def test_json_on_a_terminal_is_ascii_and_the_same(value):
    """Every spelling of it, also with characters that JSON needn't escape, and with white space between."""
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
def test_json_that_is_piped_on_is_as_it_was(value):
    """To the byte."""
    stream = io.StringIO()
    raw = json.dumps(value, ensure_ascii=False, indent=1)
    Output(stream, json=True).raw(raw)
    assert stream.getvalue() == raw


def test_a_table_has_its_columns_in_line():
    """Under headings, to the left or right; fields without a column are for programs."""
    stream = io.StringIO()
    write = Output(stream, json=False).table((Column("name", 6), Column("count", 5, right=True)))
    write({"name": "ann", "count": 7, "more": "x"})
    write({"name": None, "count": True})
    assert stream.getvalue() == "NAME    COUNT\nann         7\n-         yes\n"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (2**20, "1.0 MiB"), (2**40, "1024.0 GiB")]
)
def test_bytes_have_a_unit(count, text):
    """From bytes to GiB."""
    assert bytes_shown(count) == text


def test_progress_is_for_terminals_and_for_those_who_ask():
    """On a terminal it stays in one line, which it leaves at the end."""
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


# Commands in processes of their own.


@pytest.mark.parametrize(
    "words", [["users", "delete", "ann"], ["sessions", "revoke", "--everyone"], ["replays", "delete", "x"]]
)
def test_nothing_is_destroyed_without_asking(server, words):
    """Where there is nobody to ask it is a usage error, said before anything is looked at."""
    done = run(*SOLISYNC, *words, stdin=b"y\n", DATABASE_URL=server.dsn)
    assert (done.status, done.out) == (2, [])
    assert done.err == ["solisync: this destroys something and there is nobody to ask: say --yes"]


@pytest.mark.parametrize(
    ("answer", "status"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1), (b"\x04", 1), (b"\x03", 1)], ids=repr
)
async def test_a_terminal_is_asked(server, launch, answer, status):
    """Only yes is yes; no, nothing, the end of input and Ctrl-C change nothing."""
    await server.player("ann")
    question = "Delete 'ann' and all their data? [y/N] "
    with terminal() as (ours, theirs):
        words = "foreground", *SOLISYNC, "users", "delete", "ann"
        command = launch(*BEGIN, *words, stdin=theirs, DATABASE_URL=server.dsn)
        wait_for(lambda: command.log == question)
        ours.write(answer)
        assert command.popen.wait(PATIENCE) == status
    says = "deleted 'ann' and all that was theirs" if status == 0 else "nothing was changed"
    assert command.log.removeprefix(question).strip() == says
    assert server.sql("SELECT count(*) FROM users") == [(status,)]


def test_what_fails_is_one_line(server):
    """Exit 1; a name is escaped here too, and a full disk is no traceback."""
    done = run(*SOLISYNC, "users", "show", "no\x1b[31m\nbody", DATABASE_URL=server.dsn)
    assert (done.status, done.out, done.err) == (1, [], ["user 'no\\x1b[31m body' not found"])
    with open("/dev/full", "wb") as full, tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as err:
        variables = clean_environment(DATABASE_URL=server.dsn)
        process = start_process((*SOLISYNC, "users", "list"), variables, given, full, err)
        assert process.wait(PATIENCE) == 1
        err.seek(0)
        assert err.read() == b"solisync: No space left on device\n"


def test_names_come_out_in_utf_8_whatever_the_locale(server):
    """A terminal's settings don't decide whether a list can be written."""
    server.sql("INSERT INTO users VALUES (gen_random_uuid(), 'J\u00fcrgen', 'x', now())")
    done = run(*SOLISYNC, "users", "list", DATABASE_URL=server.dsn, PYTHONIOENCODING="ascii")
    assert done.status == 0
    assert "J\u00fcrgen" in done.out[1]


@pytest.mark.parametrize("words", [["users", "delete", "ann", "--yes"], ["users", "show", "ann"]])
async def test_an_interrupted_command_says_so_and_changes_nothing(server, launch, words):
    """Ctrl-C ends it in one line; a change that has begun is given its time, here until it gives up waiting."""
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
    """A closed standard input is an empty one: one line, and no traceback."""
    done = run("sh", "-c", f"exec {BIN}/{command} <&-", DATABASE_URL=server.dsn)
    assert done.status != 0
    assert len(done.err) == 1


def test_command_without_any_standard_stream_works(server):
    """Closed standard streams are no reason to fail, and their numbers go to no other file."""
    done = run("sh", "-c", f"exec {BIN}/solisync users list <&- >&- 2>&-", DATABASE_URL=server.dsn)
    assert (done.status, done.out, done.err) == (0, [], [])
