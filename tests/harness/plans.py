"""The plans of prepared statements."""

from tests.harness.postgres import connect


class Plan:
    """The plan of a statement: its `text`, the number of buffers that it touched, and its time."""

    def __init__(self, lines):
        self.text = "\n".join(line for (line,) in lines)
        # of the topmost node, for all nodes; temporary files follow after a comma
        touched = self.text.partition("Buffers: shared ")[2].partition("\n")[0].partition(",")[0]
        self.buffers = sum(int(part.partition("=")[2]) for part in touched.split() if part.startswith(("hit", "read")))
        self.milliseconds = float(self.text.partition("Execution Time: ")[2].split()[0])


def plan(dsn, statement, *parameters):
    """Explain the second run of a statement under a generic plan, which the service uses in the long run.

    Only the total time is measured: reading the clock for each row of each node would take longer than the rows.
    """
    execution = f"EXECUTE p({', '.join(['%s'] * len(parameters))})" if parameters else "EXECUTE p"
    connection = connect(dsn)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SET plan_cache_mode = force_generic_plan; PREPARE p AS {statement.sql}")
            cursor.execute(execution, parameters)
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {execution}", parameters)
            return Plan(cursor.fetchall())
    finally:
        connection.close()
