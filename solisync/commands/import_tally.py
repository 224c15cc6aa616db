"""What `solisync import-original` reports: each row that is refused or odd, and how many there were."""

from dataclasses import asdict, dataclass

from .output import Column, Output, ProgressLine

COLUMNS = (
    Column("table", 16),
    *(Column(name, 10, right=True) for name in ("read", "imported", "present", "refused", "warnings")),
)
TABLES = (
    "users",
    "sync_state",
    "leaderboard",
    "avatars",
    "replays",
    "refresh_tokens",
    "analytics_events",
    "daily_challenges",
)
ID_LENGTH = 64


@dataclass(slots=True)
class Line:
    """The counts of a table; `present` is what is here already, or was, and was spent or deleted here."""

    table: str
    read: int = 0
    imported: int = 0
    present: int = 0
    refused: int = 0
    warnings: int = 0


class Tally:
    """Counts rows and reports those that need a look; `spent` are refresh tokens deleted here because spent there."""

    def __init__(self, output: Output, progress: ProgressLine) -> None:
        self._output = output
        self._progress = progress
        self._lines = {table: Line(table) for table in TABLES}
        self.spent = 0

    @property
    def refused(self) -> int:
        """How many rows were refused in all."""
        return sum(line.refused for line in self._lines.values())

    def report(self, text: str) -> None:
        """Report progress."""
        self._progress.report(text)

    def read(self, table: str, count: int = 1) -> None:
        """Count rows that were read."""
        self._lines[table].read += count

    def imported(self, table: str, count: int = 1) -> None:
        """Count rows that were stored, or made something better."""
        self._lines[table].imported += count

    def present(self, table: str, count: int = 1) -> None:
        """Count rows that have nothing new."""
        self._lines[table].present += count

    def refuse(self, table: str, row_id: object, reason: str) -> None:
        """Count and report a row that is not imported."""
        self._lines[table].refused += 1
        self._say("refused", table, row_id, reason)

    def warn(self, table: str, row_id: object, reason: str) -> None:
        """Count and report what needs a look, but fails nothing."""
        self._lines[table].warnings += 1
        self._say("warning", table, row_id, reason)

    def show(self) -> None:
        """Write the table of all counts."""
        self._progress.clear()
        if self.spent:
            text = f"sessions that have gone on there since they were imported, and so were ended here: {self.spent:,}"
            self._output.say(text, spent=self.spent)
        write = self._output.table(COLUMNS)
        for line in self._lines.values():
            write(asdict(line))

    def _say(self, problem: str, table: str, row_id: object, reason: str) -> None:
        # of any type and length: whatever the file has
        name = None if row_id is None else str(row_id)[:ID_LENGTH].encode("utf-8", "backslashreplace").decode()
        text = f"{problem}: {table}{'' if name is None else f' {name}'}: {reason}"
        self._progress.clear()
        self._output.say(text, problem=problem, table=table, id=name, reason=reason)
