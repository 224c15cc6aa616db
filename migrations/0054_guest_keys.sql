-- A guest is a device: docs/protocol.md "Guests". Its key signs it in, whatever has become of its sessions.
CREATE TABLE guest_keys (
    -- SHA-256 of the key
    digest  bytea       PRIMARY KEY,
    -- null once the guest has been claimed, joined or deleted on request, or has another key: the key never works again
    user_id uuid        UNIQUE REFERENCES users ON DELETE SET NULL,
    gone_at timestamptz
);
CREATE INDEX guest_keys_gone ON guest_keys (gone_at) WHERE gone_at IS NOT NULL;

-- A trigger, because a foreign key takes the user from the row, too.
CREATE FUNCTION date_gone_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.gone_at := clock_timestamp();
    RETURN NEW;
END
$$;
CREATE TRIGGER guest_key_gone BEFORE UPDATE OF user_id ON guest_keys FOR EACH ROW
    WHEN (NEW.user_id IS NULL) EXECUTE FUNCTION date_gone_key();

-- The last use of a guest, which decides when housekeeping deletes it. Guests of version 1.1.0 count as used now: the
-- default costs no rewrite of the table.
ALTER TABLE users
    ADD COLUMN guest_used_at timestamptz DEFAULT now(),
    -- true once a guest was used on two different days
    ADD COLUMN guest_returned boolean,
    -- the username of a guest who has become a player: events may still have it
    ADD COLUMN guest_name text COLLATE "C";
ALTER TABLE users ALTER COLUMN guest_used_at DROP DEFAULT;

-- Every statement that begins or refreshes a session chooses a free `exp`, also on nodes of 1.1.0. The time never falls,
-- and isn't before the retention clock, so that a clock that is behind for a minute makes no guest old.
CREATE FUNCTION date_use_of_guest() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    former timestamptz := CASE TG_OP WHEN 'UPDATE' THEN OLD.guest_used_at END;
BEGIN
    NEW.guest_used_at := greatest(former, clock_timestamp(), (SELECT at FROM retention_clock));
    IF (former AT TIME ZONE 'UTC')::date <> (NEW.guest_used_at AT TIME ZONE 'UTC')::date THEN
        NEW.guest_returned := true;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER guest_used BEFORE INSERT OR UPDATE OF access_expiries ON users FOR EACH ROW
    WHEN (NEW.guest) EXECUTE FUNCTION date_use_of_guest();

-- As before; the key of a guest who becomes a player is gone, too, and the former name is kept.
CREATE OR REPLACE FUNCTION end_guest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.guest := NULL;
    NEW.guest_name := OLD.username;
    UPDATE guest_keys SET user_id = NULL WHERE user_id = OLD.id;
    RETURN NEW;
END
$$;
