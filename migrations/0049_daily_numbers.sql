-- The numbers of each day, for operators: docs/console.md "Numbers over time". Housekeeping counts them. Names of later
-- versions need no migration.
CREATE TABLE daily_numbers (
    day        date        NOT NULL,
    name       text        COLLATE "C" NOT NULL,
    count      bigint      NOT NULL,
    -- the last count of this number; one that is later than the day makes the number final
    counted_at timestamptz NOT NULL,
    PRIMARY KEY (day, name)
);

-- When accounts were deleted, without their names. Guests don't count.
CREATE TABLE account_deletions (
    deleted_at timestamptz NOT NULL
);
INSERT INTO account_deletions (deleted_at) SELECT at FROM admin_acts WHERE act = 'delete';

-- A trigger, because nodes of 1.0.0 delete accounts too.
CREATE FUNCTION record_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO account_deletions (deleted_at) VALUES (clock_timestamp());
    RETURN NULL;
END
$$;
CREATE TRIGGER deletion_recorded AFTER DELETE ON users FOR EACH ROW WHEN (OLD.guest IS NOT TRUE)
    EXECUTE FUNCTION record_deletion();

-- The last push of the session, for the number of active players. Null if a node of 1.0.0 stored it: then the player
-- counts by the use of the session alone. Not indexed, so that a push costs no more than before.
ALTER TABLE known_states ADD COLUMN pushed_at timestamptz;
