"""A database with a table of numbered notes: its statements, and helpers that change and inspect it."""

from contextlib import AbstractContextManager

from twisted.internet.defer import Deferred

from solisync.postgres.statement import Statement
from tests.harness.postgres import connect, run_sql

PID = Statement("pid", "SELECT pg_backend_pid()")
ADD = Statement("add", "INSERT INTO notes VALUES ($1::int)")
ADD_AND_DIVIDE = Statement(
    "add_and_divide",
    "WITH added AS (INSERT INTO notes VALUES ($1::int) RETURNING n) INSERT INTO notes SELECT 1 / (n - n) FROM added",
)
SLEEP = Statement("sleep", "SELECT pg_sleep($1::float8)")
LOCK = Statement("lock_note", "SELECT n FROM notes WHERE n = $1::int FOR UPDATE")
WAIT = Statement("wait", "SELECT pg_advisory_xact_lock_shared(1)")  # while another client holds the lock, see HOLD_UP
SET = Statement("set_locally", "SELECT set_config($1::text, $2::text, true)")
SHOW = Statement("show", "SELECT current_setting($1::text)")
FAIL = Statement("fail", "SELECT fail($1::text)")
FAR = Statement("far", "VALUES ('2026-01-01'::timestamptz), ('20000-01-01'::timestamptz)")
STATEMENTS = (PID, FAR, ADD, ADD_AND_DIVIDE, SLEEP, LOCK, WAIT, SET, SHOW, FAIL)

SCHEMA = """
    CREATE TABLE notes (n int);
    CREATE FUNCTION fail(code text) RETURNS void LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION USING ERRCODE = code; END $$;
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.n >= 1000) EXECUTE FUNCTION wait();
"""
SLOW = 1000  # a note of this number can't be committed while another client holds the lock:
HOLD_UP = "SELECT pg_advisory_xact_lock(1)"


class Holding(AbstractContextManager):
    """A transaction of another client that has run a statement."""

    def __init__(self, dsn, statement=HOLD_UP):
        self._connection = connect(dsn)
        self._cursor = self._connection.cursor()
        self._cursor.execute("BEGIN")
        self._cursor.execute(statement)

    def end(self):
        self._connection.close()

    def __exit__(self, *_):
        self.end()


def started(coroutine):
    return Deferred.fromCoroutine(coroutine)


def backends(dsn):
    """Return the service's connections to this database, as the server sees them: (pid, state)."""
    return run_sql(
        dsn,
        "SELECT pid, state FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'solisync' ORDER BY 1",
    )


def notes(dsn):
    return [n for (n,) in run_sql(dsn, "SELECT n FROM notes ORDER BY n")]


def terminate(dsn, number):
    run_sql(dsn, "SELECT pg_terminate_backend(%s)", (number,))


async def add(transaction, n):
    await transaction.run((ADD, n))


async def pid(transaction):
    ((number,),) = await transaction.run((PID,))
    return number


async def sleep(transaction, seconds):
    await transaction.run((SLEEP, seconds))
