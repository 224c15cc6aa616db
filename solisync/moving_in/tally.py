"""What `solisync import-original` reports: each row that is refused or odd, and how many there were."""

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
    """The counts of a table; `present` is what is here already, or was, and was spent or deleted here."""

    table: str
    read: int = 0
    imported: int = 0
    present: int = 0
    refused: int = 0
    warnings: int = 0


class Tally:
    """Counts rows, and reports those that need a look with `say(text, **facts)`.

    `spent` is the number of refresh tokens that were deleted here because they were spent there.
    """

    def __init__(self, say: Callable[..., None]) -> None:
        self._say = say
        self.lines = [Line(table) for table in TABLES]
        self._by_table = {line.table: line for line in self.lines}
        self.spent = 0

    @property
    def refused(self) -> int:
        """How many rows were refused in all."""
        return sum(line.refused for line in self.lines)

    def read(self, table: str, count: int = 1) -> None:
        """Count rows that were read."""
        self._by_table[table].read += count

    def imported(self, table: str, count: int = 1) -> None:
        """Count rows that were stored, or made something better."""
        self._by_table[table].imported += count

    def present(self, table: str, count: int = 1) -> None:
        """Count rows that have nothing new."""
        self._by_table[table].present += count

    def refuse(self, table: str, row_id: object, reason: str) -> None:
        """Count and report a row that is not imported."""
        self._by_table[table].refused += 1
        self._tell("refused", table, row_id, reason)

    def warn(self, table: str, row_id: object, reason: str) -> None:
        """Count and report what needs a look, but fails nothing."""
        self._by_table[table].warnings += 1
        self._tell("warning", table, row_id, reason)

    def _tell(self, problem: str, table: str, row_id: object, reason: str) -> None:
        # of any type and length: whatever the file has
        name = None if row_id is None else str(row_id)[:ID_LENGTH].encode("utf-8", "backslashreplace").decode()
        text = f"{problem}: {table}{'' if name is None else f' {name}'}: {reason}"
        self._say(text, problem=problem, table=table, id=name, reason=reason)
