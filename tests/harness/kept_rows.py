"""The rows of a database that no clock may delete before its time."""

from tests.harness.postgres import run_sql

# Their rows change in each round, or are the memory of an hour.
CHANGING = ("retention_clock", "housekeeping", "daily_numbers", "rate_limits", "recent_searches")
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND NOT tablename = ANY (%s) ORDER BY 1"


def kept_rows(dsn):
    """All rows of all other tables, as pairs of the table and the row in words."""
    tables = [table for (table,) in run_sql(dsn, TABLES, ([*CHANGING, "clock_of_test"],))]
    return {(table, row) for table in tables for (row,) in run_sql(dsn, f"SELECT each::text FROM {table} AS each")}
