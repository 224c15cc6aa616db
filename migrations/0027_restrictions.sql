-- Suspended players, access tokens that count no more, locks and held replays: docs/moderation.md. Triggers decide what
-- nodes of an older version must obey too, which know none of these tables.

CREATE TABLE suspensions (
    user_id     uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    since       timestamptz NOT NULL,
    until       timestamptz,
    message     text,
    -- whether the entry on the leaderboard is to be visible again afterwards
    was_visible boolean     NOT NULL
);
CREATE INDEX suspensions_until ON suspensions (until) WHERE until IS NOT NULL;

-- Access tokens whose `exp` is not above it are refused.
CREATE TABLE access_cutoffs (
    user_id uuid   PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    cutoff  bigint NOT NULL
);

CREATE TABLE profile_locks (
    user_id uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    since   timestamptz NOT NULL
);

-- An operator has taken the replay off the lists: true, or null.
ALTER TABLE replays ADD COLUMN held boolean;

-- Each change of a suspension or a cutoff raises it, so that processes load these only when they have changed. A row, and
-- no sequence: the number must become visible together with the change. By a random step, so that a number which a
-- failover has lost does not come again with another content.
CREATE TABLE restriction_number (
    id     int    PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    number bigint NOT NULL
);

CREATE FUNCTION raise_restriction_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO restriction_number AS known (number) VALUES (1 + floor(random() * 1000000)::bigint)
    ON CONFLICT (id) DO UPDATE SET number = known.number + excluded.number;
    RETURN NULL;
END
$$;
-- for each row, because the deletion of any account is a statement on both tables, mostly of no row
CREATE TRIGGER suspension_changed AFTER INSERT OR UPDATE OR DELETE ON suspensions
    FOR EACH ROW EXECUTE FUNCTION raise_restriction_number();
CREATE TRIGGER cutoff_changed AFTER INSERT OR UPDATE OR DELETE ON access_cutoffs
    FOR EACH ROW EXECUTE FUNCTION raise_restriction_number();

-- No session begins or goes on while a player is suspended. Whoever inserts a row has locked the player's, as suspending
-- does: what was committed before is seen here, because each statement of a volatile function sees what is new.
CREATE FUNCTION refuse_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN EXISTS (SELECT FROM suspensions WHERE user_id = NEW.user_id) THEN NULL ELSE NEW END;
END
$$;
CREATE TRIGGER session_refused BEFORE INSERT ON refresh_tokens FOR EACH ROW EXECUTE FUNCTION refuse_session();

-- What is issued after a cutoff is above it, also where the clock of a node is slow.
CREATE FUNCTION issue_above_cutoff() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    free bigint := (SELECT cutoff + 1 FROM access_cutoffs WHERE user_id = NEW.id);
BEGIN
    IF NEW.access_expiries[1] < free THEN
        WHILE free = ANY (OLD.access_expiries) LOOP
            free := free + 1;
        END LOOP;
        NEW.access_expiries := free || NEW.access_expiries[2:];
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER access_issued BEFORE UPDATE OF access_expiries ON users
    FOR EACH ROW EXECUTE FUNCTION issue_above_cutoff();

-- The entry of a suspended player is not visible. That of a locked one doesn't become so and keeps its name, but for
-- what an operator does, who says so in `solisync.act` until the end of the transaction.
CREATE FUNCTION restrict_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM suspensions WHERE user_id = NEW.user_id) THEN
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
CREATE TRIGGER entry_restricted BEFORE INSERT OR UPDATE OF visible, display_name ON leaderboard
    FOR EACH ROW EXECUTE FUNCTION restrict_entry();

-- What a locked player uploads is held, and what is held is not listed.
CREATE FUNCTION hold_upload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM profile_locks WHERE user_id = NEW.user_id) THEN
        NEW.held := true;
        NEW.unlisted := true;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER upload_held BEFORE INSERT ON replays FOR EACH ROW EXECUTE FUNCTION hold_upload();

CREATE FUNCTION keep_unlisted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.unlisted := true;
    RETURN NEW;
END
$$;
CREATE TRIGGER held_unlisted BEFORE UPDATE OF unlisted ON replays
    FOR EACH ROW WHEN (NEW.held AND NEW.unlisted IS NULL) EXECUTE FUNCTION keep_unlisted();
