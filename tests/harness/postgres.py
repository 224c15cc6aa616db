"""Statements of the test's own on a PostgreSQL database, beside those of the service."""

import contextlib
import subprocess

import psycopg2

QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300")
CONTENT = {
    "users": "id, username, password_hash, created_at, avatar_extension",
    "avatars": "user_id, image, etag",
    "replays": "id, body, received_at",
    "sync_states": "user_id, payload",
    "leaderboard": "user_id, display_name, visible",
    "schema_migrations": "number, name, checksum, applied_at",
}


def connect(dsn):
    """A connection that commits each statement."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    return connection


def run_sql(dsn, sql, parameters=None):
    """Run one statement and return its rows."""
    connection = connect(dsn)
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def copy_cluster(cluster, directory):
    """Copy a cluster whose server is stopped, with its owner and modes."""
    subprocess.run(["cp", "-a", cluster, directory], check=True)


def truncate(dsn):
    """Empty every table but the list of migrations."""
    tables = run_sql(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    names = ", ".join(name for (name,) in tables if name != "schema_migrations")
    while True:
        with contextlib.suppress(psycopg2.errors.DeadlockDetected):  # housekeeping wanted the same tables
            run_sql(dsn, f"TRUNCATE {names} CASCADE")
            return


def content(dsn):
    """What a backup must keep: the rows of each table."""
    return {table: run_sql(dsn, f"SELECT {columns} FROM {table} ORDER BY 1") for table, columns in CONTENT.items()}
