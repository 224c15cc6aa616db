"""The clock of a database, which a test moves: functions, views and statements find this one before PostgreSQL's."""

from tests.harness.postgres import run_sql

CLOCK = """
    CREATE TABLE clock_of_test AS SELECT interval '0' AS ahead, NULL::timestamptz AS fixed;
    CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
        SELECT coalesce(fixed, pg_catalog.clock_timestamp() + ahead) FROM public.clock_of_test
    $$;
"""


class DatabaseClock:
    """The clock of a migrated database of one test, which has no connections yet."""

    def __init__(self, dsn):
        self._dsn = dsn
        ((view, database),) = run_sql(dsn, "SELECT pg_get_viewdef('retention'), current_database()")
        run_sql(dsn, CLOCK)
        run_sql(dsn, f"ALTER DATABASE {database} SET search_path = public, pg_catalog")
        run_sql(dsn, f"CREATE OR REPLACE VIEW retention AS {view}")
        run_sql(dsn, "UPDATE retention_clock SET at = clock_timestamp(), moved_at = clock_timestamp()")

    def step(self, ahead):
        """Let the clock go ahead of the real one by a time, such as "31 days"."""
        run_sql(self._dsn, "UPDATE clock_of_test SET ahead = %s::interval", (ahead,))
