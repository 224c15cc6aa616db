"""Statements of tests on a PostgreSQL database, independent of the service's."""

import contextlib
import subprocess
import threading
from typing import NamedTuple

import psycopg2

QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300", "autovacuum=off")
CONTENT = {
    "users": "id, username, password_hash, created_at, avatar_extension",
    "avatars": "user_id, image, etag",
    "replays": "id, body, received_at, unlisted, held",
    "sync_states": "user_id, payload",
    "leaderboard": "user_id, display_name, visible",
    "suspensions": "user_id, since, until, message, was_visible",
    "access_cutoffs": "user_id, cutoff",
    "profile_locks": "user_id, since",
    "admin_acts": "id, at, actor_kind, actor, act, target, reason, client, request_id",
    "admin_notes": "act_id, user_id, replay_id, note, before, after",
    "retention_clock": "one, at, moved_at",
    "schema_migrations": "number, name, checksum, applied_at",
}
# Uses DELETE for small tables: TRUNCATE makes new files for each table and its indexes, which takes ten times as long.
EMPTY = """
DO $$
DECLARE
    each text;
    tables text[];
BEGIN
    PERFORM set_config('session_replication_role', 'replica', true);  -- no triggers: they keep the record of acts
    SELECT array_agg(format('%I', tablename)) INTO tables
    FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('schema_migrations', 'retention_clock');
    EXECUTE 'LOCK TABLE ' || array_to_string(tables, ', ') || ' IN SHARE ROW EXCLUSIVE MODE';
    FOREACH each IN ARRAY tables LOOP
        CONTINUE WHEN pg_relation_size(each::regclass) = 0;
        IF pg_table_size(each::regclass) < 300000 THEN
            EXECUTE 'DELETE FROM ' || each;
        ELSE
            EXECUTE 'TRUNCATE ' || each || ' CASCADE';
        END IF;
    END LOOP;
    UPDATE retention_clock SET at = 'infinity' WHERE at <> 'infinity';  -- so it equals the clock: see the view
END $$
"""
# The kept connection to the database that most tests share: connecting takes ten times as long as a statement.
KEPT = {}


def connect(dsn):
    """Open a connection that commits each statement."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    return connection


def run_sql(dsn, sql, parameters=None):
    """Run one statement and return its rows."""
    connection, keeps = connection_for(dsn)
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []
    finally:
        if not keeps:
            connection.close()
        elif not connection.closed:
            forget_session(connection)


class Waiter(NamedTuple):
    """A connection that waits for a lock: its process id, its application's name and its statement."""

    pid: int
    application: str
    query: str


def lock_waiters(dsn):
    """The connections to this database that wait for a lock."""
    asked = (
        "SELECT pid, application_name, query FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return [Waiter(*row) for row in run_sql(dsn, asked)]


def connection_for(dsn):
    """A connection to a database, and whether it is kept; the main thread keeps one to the shared database."""
    if dsn not in KEPT or threading.current_thread() is not threading.main_thread():
        return connect(dsn), False
    connection = KEPT[dsn]
    if connection is None or not is_alive(connection):  # a test may have ended all connections, including this one
        connection = KEPT[dsn] = connect(dsn)
    return connection, True


def is_alive(connection):
    try:
        forget_session(connection)
    except (psycopg2.OperationalError, psycopg2.InterfaceError):
        return False
    return True


def forget_session(connection):
    """Undo all settings and locks of a connection, as if it were new."""
    with connection.cursor() as cursor:
        cursor.execute("DISCARD ALL")


def copy_cluster(cluster, directory):
    """Copy a cluster whose server is stopped, with its owner and modes."""
    subprocess.run(["cp", "-a", cluster, directory], check=True)


def truncate(dsn):
    """Empty every table but the list of migrations, after running writes have ended."""
    while True:
        with contextlib.suppress(psycopg2.errors.DeadlockDetected):  # housekeeping locked the same tables
            return run_sql(dsn, EMPTY)


def content(dsn):
    """The rows of each table, which a backup must keep."""
    return {table: run_sql(dsn, f"SELECT {columns} FROM {table} ORDER BY 1") for table, columns in CONTENT.items()}
