"""The rounds of housekeeping: each job runs once in its time over all processes (docs/administration.md)."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from solisync import housekeeping
from solisync.errors import DatabaseError
from solisync.housekeeping import HOUR, MINUTE, NAMES, HousekeepingJob
from solisync.storage import housekeeping as runs
from tests.harness.concurrency import gather
from tests.harness.housekeeping import make_housekeeping

AGED = "UPDATE housekeeping SET claimed_at = claimed_at - %s::interval, ran_at = ran_at - %s::interval"
BOTH = ["minutely", "hourly"]


class Process:
    """The housekeeping of one process; a test starts its rounds."""

    def __init__(self, database, reactor, jobs):
        self.shown = None
        self._reactor = reactor
        self._clock = Clock()
        self._ended = None
        make_housekeeping(database, self._clock, show=self._show, jobs=jobs).start()

    def _show(self, **numbers):
        self.shown = numbers
        self._reactor.callLater(0, self._ended.callback, None)  # after the end of the round

    async def round(self):
        """Run one round."""
        self._ended = Deferred()
        self._clock.advance(housekeeping.EVERY_SECONDS)
        await self._ended


@pytest.fixture
def process(server, open_database, reactor):
    """Return a function that starts the housekeeping of a process."""
    return lambda jobs=(): Process(open_database(), reactor, jobs)


@pytest.fixture
def ran():
    """The names of the jobs that ran; `jobs` is one of each minute and one of each hour."""
    return []


@pytest.fixture
def jobs(ran):
    def job(name, **given):
        async def run(keeper):
            ran.append(name)
            return 0

        return HousekeepingJob(name, run, **given)

    return job("minutely"), job("hourly", every=HOUR, deletes_by_age=False)


@pytest.fixture
def pass_time(server):
    """Return a function that lets the last runs be older by a time."""
    return lambda time: server.sql(AGED, (time, time))


async def test_each_job_runs_once_over_all_processes(process, jobs, ran):
    """Rounds of eight processes at the same time run each job once."""
    processes = [process(jobs) for _ in range(8)]
    await gather(8, lambda each: each.round(), processes)
    assert sorted(ran) == ["hourly", "minutely"]


async def test_job_runs_again_after_its_time(process, jobs, ran, pass_time):
    """Whichever process has the first round after that time runs the job."""
    one, other = process(jobs), process(jobs)
    for each in (one, other):
        await each.round()
    del ran[:]
    for passed, expected in ("30 s", []), ("31 s", ["minutely"]), ("30 min", ["minutely"]), ("30 min", BOTH):
        pass_time(passed)
        for each in (other, one, other):
            await each.round()
        assert ran == expected, passed
        del ran[:]


async def test_first_round_of_a_process_runs_hourly_jobs_too(process, jobs, ran, pass_time):
    """The round doesn't run those that another process has begun within a minute."""
    await process(jobs).round()
    await process(jobs).round()
    assert ran == BOTH
    pass_time("61 s")
    await process(jobs).round()
    assert ran == BOTH * 2


async def test_last_run_that_is_yet_to_come_makes_a_job_due(process, jobs, ran, pass_time):
    """A clock that has been corrected since stored it."""
    running = process(jobs)
    await running.round()
    pass_time("-31 days")
    await running.round()
    assert ran == BOTH * 2


async def test_failed_job_runs_again_after_a_minute(process, pass_time):
    """An hourly job that fails is logged, and has no last run. The other jobs run."""
    begun = []

    async def fail(keeper):
        begun.append("fails")
        raise DatabaseError("no")

    async def run(keeper):
        return 0

    running = process((HousekeepingJob("fails", fail, every=HOUR), HousekeepingJob("runs", run)))
    with capturedLogs() as logged:
        await running.round()
    said = [formatEvent(event) for event in logged if event["log_namespace"] == "solisync.housekeeping.Housekeeping"]
    assert said == ["housekeeping postpones fails for a minute: no"]
    assert [*running.shown["last_runs"]] == ["runs"]
    for passed, times in ("30 s", 1), ("31 s", 2):
        pass_time(passed)
        await running.round()
        assert len(begun) == times


async def test_job_of_many_batches_goes_on_in_the_next_round(process, pass_time):
    """The other jobs run in each round."""
    done = []

    async def work(keeper):
        async def batch():
            done.append("batch")
            keeper._loop.clock.advance(housekeeping.ROUND_SECONDS / 2)
            return housekeeping.BATCH if done.count("batch") < 5 else 0

        return await keeper._in_batches(batch)

    async def run(keeper):
        done.append("other")
        return 0

    running = process((HousekeepingJob("large", work, every=HOUR), HousekeepingJob("runs", run)))
    for round_ in (["batch", "batch", "other"],) * 2:
        done_before = len(done)
        await running.round()
        assert done[done_before:] == round_
        assert [*running.shown["last_runs"]] == ["runs"]
        pass_time("61 s")
    await running.round()
    assert [*running.shown["last_runs"]] == ["large", "runs"]


async def test_job_of_a_killed_process_runs_again_after_a_minute(process, jobs, ran, pass_time, open_database):
    """The process was killed after it had claimed the jobs."""
    running, database = process(jobs), open_database()
    assert await database.run(runs.claim, BOTH, [MINUTE, HOUR], MINUTE) == sorted(BOTH)
    for passed, expected in ("30 s", []), ("31 s", BOTH):
        pass_time(passed)
        await running.round()
        assert ran == expected


async def test_every_process_shows_the_numbers_of_the_database(server, process):
    """A process shows the same after a round in which others ran the jobs."""
    await server.client().guest()
    one, other = process(), process()
    for each in (one, other):
        await each.round()
    assert one.shown == other.shown | {"behind": one.shown["behind"]}
    assert (one.shown["guests"], one.shown["reset_links"], one.shown["backed_up"]) == (1, 0, 0)
    assert sorted(one.shown["last_runs"]) == sorted(NAMES)
    server.sql("DELETE FROM users")
    await other.round()
    assert other.shown["guests"] == 0


async def test_clock_moves_before_jobs_that_delete_by_age(server, process, jobs, ran):
    """A round without such a job doesn't move the retention clock."""
    running = process(jobs)
    for moved in (False, True):
        server.sql("UPDATE retention_clock SET at = clock_timestamp() - interval '1 h', moved_at = '-infinity'")
        server.sql("DELETE FROM housekeeping")
        if not moved:
            server.sql("INSERT INTO housekeeping SELECT 'minutely', clock_timestamp(), clock_timestamp()")
        await running.round()
        assert server.sql("SELECT moved_at > '-infinity' FROM retention_clock") == [(moved,)]
