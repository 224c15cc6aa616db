-- Counts the players who came after 0059, and those without replays. From then on every player with replays has a row.
-- The locks wait for uploads, deletions and joins. Weaker ones would have to grow for ALTER TABLE, and an upload that has
-- read replay_usage would wait for the migration, and the migration for the upload.
LOCK TABLE joined_guests, replays IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE replay_usage IN ACCESS EXCLUSIVE MODE;
INSERT INTO replay_usage (user_id, used_bytes, replays)
SELECT user_id, sum(replay_charge(size)), count(*) FROM replays
WHERE NOT EXISTS (SELECT FROM replay_usage WHERE replay_usage.user_id = replays.user_id)
GROUP BY user_id;
UPDATE replay_usage SET replays = (SELECT count(*) FROM replays WHERE replays.user_id = replay_usage.user_id)
WHERE replays IS NULL;
ALTER TABLE replay_usage ALTER COLUMN replays SET DEFAULT 0, ALTER COLUMN replays SET NOT NULL;

DROP TRIGGER replay_stored ON replays;
DROP TRIGGER replay_deleted ON replays;
DROP FUNCTION count_replay();

-- Add up the replays and bytes of each player. Triggers, so that statements of older nodes count too.
CREATE FUNCTION count_stored_replays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO replay_usage AS known (user_id, used_bytes, replays)
    SELECT user_id, sum(replay_charge(size)), count(*) FROM stored GROUP BY user_id ORDER BY user_id
    ON CONFLICT (user_id) DO UPDATE SET used_bytes = known.used_bytes + excluded.used_bytes,
        replays = known.replays + excluded.replays;
    RETURN NULL;
END
$$;
CREATE TRIGGER replay_stored AFTER INSERT ON replays REFERENCING NEW TABLE AS stored
    FOR EACH STATEMENT EXECUTE FUNCTION count_stored_replays();

-- Its UPDATE needs no lock of the player: a player who is being deleted needs no number.
CREATE FUNCTION count_deleted_replays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE replay_usage SET used_bytes = replay_usage.used_bytes - gone.bytes, replays = replay_usage.replays - gone.count
    FROM (
        SELECT user_id, sum(replay_charge(size)) AS bytes, count(*) AS count FROM deleted GROUP BY user_id
    ) AS gone
    WHERE replay_usage.user_id = gone.user_id;
    RETURN NULL;
END
$$;
-- Not while a player is deleted: that deletes the row of replay_usage too, and may delete any number of replays.
CREATE TRIGGER replay_deleted AFTER DELETE ON replays REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT
    WHEN (pg_trigger_depth() = 0 AND current_setting('solisync.erasing', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION count_deleted_replays();

-- The statement of a join moves replays, and changes the player's row if there is one. Then this adds a missing row.
CREATE FUNCTION count_joined_replays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO replay_usage (user_id, used_bytes, replays)
    SELECT user_id, sum(replay_charge(size)), count(*) FROM replays
    WHERE user_id = NEW.user_id AND NOT EXISTS (SELECT FROM replay_usage WHERE user_id = NEW.user_id)
    GROUP BY user_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER replays_joined AFTER INSERT ON joined_guests FOR EACH ROW EXECUTE FUNCTION count_joined_replays();
