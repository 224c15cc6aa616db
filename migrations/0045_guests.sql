-- Guests: accounts without a password, docs/protocol.md "Guests". `guest` is true, or null. The stored hash of a guest is
-- random text that no password verifies.
ALTER TABLE users ADD COLUMN guest boolean;

-- Guests whose games a player has taken over. A row stays for 30 days, so that a request whose answer was lost can be
-- repeated.
CREATE TABLE joined_guests (
    guest_id  uuid        PRIMARY KEY,
    user_id   uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    joined_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX joined_guests_player ON joined_guests (user_id);
CREATE INDEX joined_guests_joined ON joined_guests (joined_at);

-- A guest who gets a password is a player from then on. A trigger, because nodes of 1.0.0 set passwords too.
CREATE FUNCTION end_guest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.guest := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER guest_ended BEFORE UPDATE OF password_hash ON users FOR EACH ROW
    WHEN (OLD.guest AND NEW.password_hash IS DISTINCT FROM OLD.password_hash) EXECUTE FUNCTION end_guest();

-- A guest has no avatar. A trigger, because nodes of 1.0.0 know no guests.
CREATE FUNCTION refuse_avatar_of_guest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a guest has no avatar' USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER guest_without_avatar BEFORE UPDATE OF avatar_extension ON users FOR EACH ROW
    WHEN (OLD.guest AND NEW.avatar_extension IS NOT NULL) EXECUTE FUNCTION refuse_avatar_of_guest();

-- As before; what a guest uploads is unlisted, too.
CREATE OR REPLACE FUNCTION hold_upload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM profile_locks WHERE user_id = NEW.user_id) THEN
        NEW.held := true;
        NEW.unlisted := true;
    ELSIF EXISTS (SELECT FROM users WHERE id = NEW.user_id AND guest) THEN
        NEW.unlisted := true;
    END IF;
    RETURN NEW;
END
$$;

-- A guest lists no replay. A trigger, because nodes of 1.0.0 list the replays of guests, too.
CREATE FUNCTION keep_unlisted_of_guest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM users WHERE id = NEW.user_id AND guest) THEN
        NEW.unlisted := true;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER guest_unlisted BEFORE UPDATE OF unlisted ON replays FOR EACH ROW
    WHEN (NEW.unlisted IS NULL) EXECUTE FUNCTION keep_unlisted_of_guest();

-- As before; the entry of a guest is not visible, too.
CREATE OR REPLACE FUNCTION restrict_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM suspensions WHERE user_id = NEW.user_id)
            OR EXISTS (SELECT FROM users WHERE id = NEW.user_id AND guest) THEN
        NEW.visible := false;
    END IF;
    IF coalesce(current_setting('solisync.act', true), '') = ''
            AND EXISTS (SELECT FROM profile_locks WHERE user_id = NEW.user_id) THEN
        NEW.visible := NEW.visible AND TG_OP = 'UPDATE' AND OLD.visible;
        IF TG_OP = 'UPDATE' THEN
            NEW.display_name := OLD.display_name;
        END IF;
    END IF;
    RETURN NEW;
END
$$;
