-- How many bytes of replays each player has been charged for, so that an upload need not add up all of them. A player
-- without a row has not been counted yet: the first upload on a node that knows this table counts, with the player's
-- row locked. From then on a trigger keeps the number, and so the uploads of older nodes count as well.

CREATE TABLE replay_usage (
    user_id    uuid   PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    used_bytes bigint NOT NULL
);

-- A small replay costs more than its bytes: a row, and entries in three indexes.
CREATE FUNCTION replay_charge(size int) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT greatest(size, 4096)::bigint';

CREATE FUNCTION count_replay() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    player uuid   := CASE TG_OP WHEN 'INSERT' THEN NEW.user_id ELSE OLD.user_id END;
    charge bigint := CASE TG_OP WHEN 'INSERT' THEN replay_charge(NEW.size) ELSE -replay_charge(OLD.size) END;
BEGIN
    -- Whoever counts for the first time holds this lock: then the change is in what was counted, or is added to it.
    PERFORM FROM users WHERE id = player FOR NO KEY UPDATE;
    UPDATE replay_usage SET used_bytes = used_bytes + charge WHERE user_id = player;
    RETURN NULL;
END
$$;

CREATE TRIGGER replay_stored AFTER INSERT ON replays FOR EACH ROW EXECUTE FUNCTION count_replay();
-- Not when the player is deleted: that deletes the row of replay_usage too, and may delete any number of replays.
CREATE TRIGGER replay_deleted AFTER DELETE ON replays FOR EACH ROW WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION count_replay();
