-- The retention clock: every deletion of what is old takes its time from the view `retention`, docs/decisions.md
-- "The retention clock". Housekeeping moves `at` to the clock of the database, by 24 minutes at most, once a minute; it
-- never falls. So a clock that is wrong for a minute deletes 24 minutes' worth at most.
CREATE TABLE retention_clock (
    one      boolean     PRIMARY KEY DEFAULT true CHECK (one),
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- the time of the last move, by the clock of the database
    moved_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO retention_clock DEFAULT VALUES;

-- The time of the retention clock: no later than the clock of the database. Without the row, nothing is old.
CREATE VIEW retention AS SELECT least(at, clock_timestamp()) AS now FROM retention_clock;

-- The last runs of the jobs of housekeeping, which all processes share: docs/administration.md "solisync housekeeping".
CREATE TABLE housekeeping (
    job        text        PRIMARY KEY,
    -- the time at which a process began the job, by the clock of the database
    claimed_at timestamptz NOT NULL,
    -- the same of the last run that didn't fail
    ran_at     timestamptz
);
