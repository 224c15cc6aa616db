"""The retention clock, by which everything old is deleted: docs/decisions.md "The retention clock"."""

from ..postgres.declared import execute, one

# Rows that are old at this time may be deleted. It is no later than the clock of the database, see the view. A
# subquery, because PostgreSQL uses no index for a volatile value, which might differ from row to row.
NOW = "(SELECT now FROM retention)"

# How far the retention clock is behind the clock of the database, in whole seconds. Without its row, since 1970.
BEHIND = f"round(extract(epoch FROM clock_timestamp() - coalesce({NOW}, 'epoch')))::bigint"

STEP = "24 minutes"  # so that a wrong clock of an hour deletes a day's worth at most


# This is one statement, and reads the clock after it has locked the row: of any number at the same time, one moves the
# row. A time of the last move that is yet to come was stored by a clock that has been corrected since.
@execute(f"""
    UPDATE retention_clock
    SET at = greatest(at, least(at + interval '{STEP}', clock_timestamp())), moved_at = clock_timestamp()
    WHERE moved_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp()
    """)  # noqa: S608
async def move() -> None:
    """Move the retention clock to the clock of the database, by STEP at most, unless it was moved within a minute."""


@one(f"SELECT {BEHIND}", row=int)
async def behind() -> int:
    """How far the retention clock is behind the clock of the database, in whole seconds."""


@one(
    """
    UPDATE retention_clock AS moved SET at = greatest(moved.at, clock_timestamp()), moved_at = clock_timestamp()
    FROM retention RETURNING round(extract(epoch FROM clock_timestamp() - retention.now))::bigint
    """,
    prepared=False,
    row=int,
)
async def catch_up() -> int:
    """Set the retention clock to the clock of the database; return how far it was behind, in whole seconds."""
