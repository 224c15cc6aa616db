-- The listed replays of players who are not suspended, by their keys: the list of recent replays reads them in order.
-- Without this table it skips the replays of suspended players one by one, so that five full accounts make it thirty
-- times slower. Triggers keep the table, because nodes of 1.0.0 store, list, unlist and delete replays too, and suspend
-- players. Its rows are narrow, so that a suspension deletes 16,000 of them within a moment.
CREATE TABLE public_replays (
    received_at timestamptz,
    id          uuid,
    PRIMARY KEY (received_at, id)
);

-- From when on the table has every such replay; always, if there is no row. While the migration fills the table, no
-- replay can be stored. So it leaves out replays that are older than the newest 20,000.
CREATE TABLE public_replays_begin (
    id    int PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    since timestamptz NOT NULL
);

-- A stored replay, or one that is listed or unlisted. A suspension locks the player's row too.
CREATE FUNCTION publish_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM users WHERE id = NEW.user_id FOR NO KEY UPDATE;
    IF NEW.unlisted IS NULL THEN
        INSERT INTO public_replays (received_at, id)
        SELECT NEW.received_at, NEW.id
        WHERE NEW.received_at >= coalesce((SELECT since FROM public_replays_begin), '-infinity')
            AND NOT EXISTS (SELECT FROM suspensions WHERE user_id = NEW.user_id);
    ELSE
        DELETE FROM public_replays WHERE received_at = NEW.received_at AND id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER replay_published AFTER INSERT ON replays FOR EACH ROW WHEN (NEW.unlisted IS NULL)
EXECUTE FUNCTION publish_replay();
CREATE TRIGGER replay_published_again AFTER UPDATE OF unlisted ON replays FOR EACH ROW
WHEN ((OLD.unlisted IS NULL) <> (NEW.unlisted IS NULL)) EXECUTE FUNCTION publish_replay();

-- Deleted replays, all those of a deleted account at the same time.
CREATE FUNCTION withdraw_deleted_replays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM public_replays USING gone
    WHERE public_replays.received_at = gone.received_at AND public_replays.id = gone.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER replays_withdrawn AFTER DELETE ON replays REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
EXECUTE FUNCTION withdraw_deleted_replays();

-- The replays of a player whose suspension begins or ends. With a deleted account, a suspension goes without an end.
CREATE FUNCTION withdraw_replays_of_suspended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        DELETE FROM public_replays USING replays
        WHERE user_id = NEW.user_id AND unlisted IS NULL
            AND public_replays.received_at = replays.received_at AND public_replays.id = replays.id;
    ELSIF EXISTS (SELECT FROM users WHERE id = OLD.user_id) THEN
        INSERT INTO public_replays (received_at, id)
        SELECT received_at, id FROM replays
        WHERE user_id = OLD.user_id AND unlisted IS NULL
            AND received_at >= coalesce((SELECT since FROM public_replays_begin), '-infinity')
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER player_withdrawn AFTER INSERT OR DELETE ON suspensions FOR EACH ROW
EXECUTE FUNCTION withdraw_replays_of_suspended();

INSERT INTO public_replays_begin (since)
SELECT received_at FROM replays WHERE unlisted IS NULL
ORDER BY unlisted, received_at DESC, id DESC LIMIT 1 OFFSET 19999;

INSERT INTO public_replays (received_at, id)
SELECT received_at, id FROM replays
WHERE unlisted IS NULL AND received_at >= coalesce((SELECT since FROM public_replays_begin), '-infinity')
    AND NOT EXISTS (SELECT FROM suspensions WHERE suspensions.user_id = replays.user_id);
