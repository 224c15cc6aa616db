-- What each session's device had, so that games are counted and not only compared: docs/sync.md "How games are counted".

-- `revision` is raised by every store of a version that knows this table; `counted` is what it counts of the payload, as
-- JSON, and NULL when something else has stored the payload.
ALTER TABLE sync_states ADD COLUMN revision bigint, ADD COLUMN counted text;

-- UNLOGGED: losing it in a crash costs exactness alone, and a pull that writes it waits for no disk. Without foreign keys,
-- so that what ends a session need not wait for it.
CREATE UNLOGGED TABLE known_states (
    session_id uuid   PRIMARY KEY,
    user_id    uuid   NOT NULL,
    pushed     text,            -- what was pushed last in the session; NULL: unknown, or of no use any more
    answers    text[] NOT NULL  -- what it was answered since then, the latest last
);
CREATE INDEX known_states_user ON known_states (user_id);

-- Remembers states that the device of a session may have from now on. With too many of them only the latest count: a base
-- that left out one of them would count its games twice.
CREATE FUNCTION remember_states(session uuid, player uuid, told text[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO known_states AS known (session_id, user_id, answers) VALUES (session, player, told)
    ON CONFLICT (session_id) DO UPDATE SET
        pushed = CASE WHEN cardinality(known.answers || told) <= 16 THEN known.pushed END,
        answers = CASE WHEN cardinality(known.answers || told) <= 16 THEN known.answers END || told
    WHERE NOT told <@ known.answers
$$;

-- The same for a token that names no session: its device may have any of the player's.
CREATE FUNCTION remember_for_all(player uuid, told text[]) RETURNS void LANGUAGE sql AS $$
    SELECT remember_states(session_id, player, told) FROM (
        SELECT session_id FROM refresh_tokens
        WHERE user_id = player AND session_id IS NOT NULL AND expires_at > clock_timestamp() ORDER BY session_id
    ) AS live
$$;

-- Remembers that a session is being told `answer`, and writes only what is new. On a standby there is no memory, nor can
-- it be read.
CREATE FUNCTION remember_answer(player uuid, expiry bigint, answer text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    session uuid;
BEGIN
    IF answer IS NULL OR pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN
        RETURN;
    END IF;
    SELECT session_id INTO session FROM refresh_tokens
    WHERE user_id = player AND access_expiry = expiry AND expires_at > clock_timestamp();
    IF session IS NULL THEN
        PERFORM remember_for_all(player, ARRAY[answer]);
    ELSIF NOT EXISTS (SELECT FROM known_states WHERE session_id = session AND answer = ANY (answers)) THEN
        PERFORM remember_states(session, player, ARRAY[answer]);
    END IF;
END
$$;

-- The same where something else has stored the payload, so that what is counted of it was not known: it is from now on,
-- if the payload is still the one with this digest.
CREATE FUNCTION remember_foreign(player uuid, expiry bigint, answer text, digest text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN
        RETURN;
    END IF;
    UPDATE sync_states SET counted = answer
    WHERE user_id = player AND counted IS NULL AND encode(sha256(convert_to(payload, 'UTF8')), 'hex') = digest;
    PERFORM remember_answer(player, expiry, answer);
END
$$;

-- Whatever changes a payload and doesn't raise its revision (an older node, an operator) ends the player's memory.
CREATE FUNCTION forget_states() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM known_states WHERE user_id = OLD.user_id;
        RETURN OLD;
    END IF;
    IF TG_OP = 'INSERT' OR NEW.payload IS DISTINCT FROM OLD.payload THEN
        DELETE FROM known_states WHERE user_id = NEW.user_id;
        NEW.counted := NULL;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER foreign_insert BEFORE INSERT ON sync_states FOR EACH ROW
    WHEN (NEW.revision IS NULL) EXECUTE FUNCTION forget_states();
CREATE TRIGGER foreign_update BEFORE UPDATE ON sync_states FOR EACH ROW
    WHEN (NEW.revision IS NOT DISTINCT FROM OLD.revision) EXECUTE FUNCTION forget_states();
CREATE TRIGGER foreign_delete BEFORE DELETE ON sync_states FOR EACH ROW EXECUTE FUNCTION forget_states();
