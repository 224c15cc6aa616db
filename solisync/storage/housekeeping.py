"""The last runs of the jobs of housekeeping, over all processes."""

from dataclasses import dataclass
from datetime import datetime

from ..postgres.declared import execute, many


@dataclass(frozen=True, slots=True)
class LastRun:
    """When a job last ran without failing; None: never."""

    job: str
    ran_at: datetime | None


# A job that failed, or whose process was killed, has no run of its last claim. So it is due again after $3 seconds.
# The claim decides between processes: its time is compared after the row is locked. A time that is yet to come was
# stored by a clock that has been corrected since.
@many(
    """
    INSERT INTO housekeeping AS known (job, claimed_at)
    SELECT job, clock_timestamp()
    FROM unnest($1::text[], $2::float8[]) AS wanted (job, seconds) LEFT JOIN housekeeping AS last USING (job)
    WHERE ran_at IS NULL
        OR ran_at NOT BETWEEN clock_timestamp() - seconds * interval '1 second' AND clock_timestamp()
    ORDER BY job
    ON CONFLICT (job) DO UPDATE SET claimed_at = clock_timestamp()
        WHERE known.claimed_at NOT BETWEEN clock_timestamp() - $3::float8 * interval '1 second' AND clock_timestamp()
    RETURNING job
    """,
    row=str,
)
async def claim(jobs: list[str], every: list[float], claimed_seconds: float) -> list[str]:
    """Claim the jobs that are due, for this process: those whose last run was `every` seconds ago.

    A job that was claimed within `claimed_seconds` isn't due.
    """


@execute("UPDATE housekeeping SET ran_at = claimed_at WHERE job = $1::text")
async def ran(job: str) -> None:
    """Store that a job has run."""


@many(
    """
    SELECT job, ran_at FROM unnest($1::text[]) WITH ORDINALITY AS wanted (job, place) LEFT JOIN housekeeping USING (job)
    ORDER BY place
    """,
    row=LastRun,
)
async def last_runs(jobs: list[str]) -> list[LastRun]:
    """The last runs of these jobs, in this order."""
