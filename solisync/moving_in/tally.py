"""The report of `solisync import-original`: each refused or odd row, and the number of rows."""

from collections.abc import Callable
from dataclasses import dataclass

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
    """The counts of a table; `present` counts rows that are here already, or were spent or deleted here."""

    table: str
    read: int = 0
    imported: int = 0
    present: int = 0
    refused: int = 0
    warnings: int = 0


class Tally:
    """Counts rows, and reports rows that need a look by `say(text, **facts)`.

    `spent` is the number of refresh tokens that were deleted here because they were spent there.
    """

    def __init__(self, say: Callable[..., None]) -> None:
        self._say = say
        self.lines = [Line(table) for table in TABLES]
        self._by_table = {line.table: line for line in self.lines}
        self.spent = 0

    @property
    def refused(self) -> int:
        """The total number of refused rows."""
        return sum(line.refused for line in self.lines)

    def read(self, table: str, count: int = 1) -> None:
        """Count rows that were read."""
        self._by_table[table].read += count

    def imported(self, table: str, count: int = 1) -> None:
        """Count rows that were stored, or improved stored data."""
        self._by_table[table].imported += count

    def present(self, table: str, count: int = 1) -> None:
        """Count rows without anything new."""
        self._by_table[table].present += count

    def refuse(self, table: str, row_id: object, reason: str) -> None:
        """Count and report a row that isn't imported."""
        self._by_table[table].refused += 1
        self._tell("refused", table, row_id, reason)

    def warn(self, table: str, row_id: object, reason: str) -> None:
        """Count and report a row that needs a look, but isn't a failure."""
        self._by_table[table].warnings += 1
        self._tell("warning", table, row_id, reason)

    def _tell(self, problem: str, table: str, row_id: object, reason: str) -> None:
        # The file may have any type and any length here.
        name = None if row_id is None else str(row_id)[:ID_LENGTH].encode("utf-8", "backslashreplace").decode()
        text = f"{problem}: {table}{'' if name is None else f' {name}'}: {reason}"
        self._say(text, problem=problem, table=table, id=name, reason=reason)
