"""A clock that is a month ahead for two minutes, as the programs see it: nothing is lost (docs/decisions.md).

`tests/test_retention.py` has the short form, in which the clock is a function of the database.
"""

import subprocess
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from solisync.embedded.programs import ENVIRONMENT
from solisync.housekeeping import JOBS, MINUTE
from tests.fire.population import Population
from tests.fire.servers import servers
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD, PATIENCE
from tests.harness.entry_points import SOLISYNC, start
from tests.harness.footprint import play
from tests.harness.kept_rows import kept_rows
from tests.harness.service import ready

MONTH = 31 * 86_400
HOURLY = ",".join(f'"{job.name}"' for job in JOBS if job.every > MINUTE)


class FakedClock:
    """The wall clock of the programs that start with `variables`; their timers run as always."""

    def __init__(self, file):
        self._file = file
        library = subprocess.run(["faketime", "-f", "+0", "printenv", "LD_PRELOAD"], capture_output=True, check=True)
        self.variables = {
            "LD_PRELOAD": library.stdout.decode().strip(),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self.step(0)

    def step(self, seconds):
        """Let the clock go ahead of the right time."""
        unfinished = self._file.with_suffix(".new")
        unfinished.write_text(f"+{seconds}")
        unfinished.rename(self._file)


@pytest.mark.needs("faketime")
@pytest.mark.limit(8 * MINUTE)
@pytest.mark.parametrize("where", ["service and database", "database alone"])
async def test_clock_that_is_a_month_ahead_for_two_minutes_loses_nothing(
    reactor, launch, new_cluster, open_database, place, monkeypatch, figure, where
):
    """Two rounds of housekeeping, a registration and a refresh see the wrong clock, and a third round the right one."""
    place.chmod(0o755)
    clock = FakedClock(place / "clock")
    for name, value in clock.variables.items():
        monkeypatch.setitem(ENVIRONMENT, name, value)
    with servers(cluster=new_cluster) as made:
        primary = made.make_primary()
        variables = clock.variables if where == "service and database" else {}
        variables |= {"SOLISYNC_AUTH_LIMIT": "100/60", "SOLISYNC_ANALYTICS_DAYS": "30", "SOLISYNC_CHECKERS": "0"}
        service = start(launch, *SOLISYNC, dsn=primary.dsn, **variables)
        await ready(reactor, service.client())
        ann = service.client()
        await play(primary.dsn, ann, "ann_before")
        primary.sql("UPDATE admin_codes SET expires_at = now() + interval '2 hours'")  # not 15 minutes
        people = Population(reactor, open_database, 5)
        await people.settle(service, primary.dsn)

        async def rounds(number):
            for _ in range(number):
                ((now,),) = primary.sql("SELECT clock_timestamp()::text")
                left = f"SELECT count(*) FROM housekeeping WHERE ran_at < '{now}' AND NOT job = ANY ('{{{HOURLY}}}')"
                await until(reactor, partial(is_empty, primary, left), MINUTE + PATIENCE)

        await until(reactor, lambda: primary.sql("SELECT job FROM housekeeping"), MINUTE + PATIENCE)
        await rounds(1)  # events of accounts are stored by then, too
        before = kept_rows(primary.dsn)
        clock.step(MONTH)
        answer = await service.ask("GET", "/api/me", bearer=ann.tokens.access_token)
        assert answer.status == (401 if where == "service and database" else 200)
        await rounds(2)
        ((first,),) = primary.sql("SELECT min(ran_at) FROM housekeeping")  # the hourly jobs have run, too
        assert first > datetime.now(UTC) + timedelta(days=30)
        other = service.client()
        await other.register("other", PASSWORD)
        if where == "service and database":
            await other.refresh()
        clock.step(0)
        await rounds(1)
        assert before - kept_rows(primary.dsn) == set()
        primary.sql("DELETE FROM users WHERE username = 'other'")
        await people.check(service, primary.dsn)
        figure(f"a month ahead for two minutes, {where}: {len(before)} rows before and after")
        assert service.stop() == 0


def is_empty(server, query):
    """Return whether a query counts no rows."""
    return server.sql(query) == [(0,)]
