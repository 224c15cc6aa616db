-- The list of verified replays reads public_replays too: then no number of other uploads hides them.
ALTER TABLE public_replays ADD COLUMN verified boolean NOT NULL DEFAULT false;

-- Whether a replay is verified.
CREATE FUNCTION is_verified(replay uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM verdicts WHERE replay_id = replay AND status = 'verified')
$$;

-- As before; it marks verified replays.
CREATE OR REPLACE FUNCTION publish_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM users WHERE id = NEW.user_id FOR NO KEY UPDATE;
    IF NEW.unlisted IS NULL THEN
        INSERT INTO public_replays (received_at, id, verified)
        SELECT NEW.received_at, NEW.id, is_verified(NEW.id)
        WHERE NEW.received_at >= coalesce((SELECT since FROM public_replays_begin), '-infinity')
            AND NOT EXISTS (SELECT FROM suspensions WHERE user_id = NEW.user_id);
    ELSE
        DELETE FROM public_replays WHERE received_at = NEW.received_at AND id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;

-- As before; it marks verified replays.
CREATE OR REPLACE FUNCTION withdraw_replays_of_suspended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        DELETE FROM public_replays USING replays
        WHERE user_id = NEW.user_id AND unlisted IS NULL
            AND public_replays.received_at = replays.received_at AND public_replays.id = replays.id;
    ELSIF EXISTS (SELECT FROM users WHERE id = OLD.user_id) THEN
        INSERT INTO public_replays (received_at, id, verified)
        SELECT received_at, id, is_verified(id) FROM replays
        WHERE user_id = OLD.user_id AND unlisted IS NULL
            AND received_at >= coalesce((SELECT since FROM public_replays_begin), '-infinity')
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;

-- As before; it marks the replay in public_replays, too. `place_replay` locks the player's row first.
CREATE OR REPLACE FUNCTION place_checked_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM place_replay(id, user_id) FROM replays WHERE id = NEW.replay_id;
    UPDATE public_replays SET verified = (NEW.status = 'verified') FROM replays
    WHERE replays.id = NEW.replay_id AND public_replays.id = replays.id
        AND public_replays.received_at = replays.received_at AND verified <> (NEW.status = 'verified');
    RETURN NULL;
END
$$;
