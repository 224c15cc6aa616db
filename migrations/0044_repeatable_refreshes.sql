-- A refresh whose answer was lost can be repeated: the row of each refresh token names the token that was spent for it.
-- All three columns are null in a session that has just begun, or that a node of 1.0.0 has refreshed.
ALTER TABLE refresh_tokens
    ADD COLUMN spent_jti uuid,
    -- SHA-256 of the spent jti and the client's key; null if the client sent no key
    ADD COLUMN retry_digest bytea,
    -- `exp` of the access token before the newest one, so that requests on their way during a refresh name the session
    ADD COLUMN access_expiry_before bigint;

-- As before, but a session is found by the access token before its newest one, too.
CREATE OR REPLACE FUNCTION remember_answer(player uuid, expiry bigint, answer text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    session uuid;
BEGIN
    IF answer IS NULL OR pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN
        RETURN;
    END IF;
    SELECT session_id INTO session FROM refresh_tokens
    WHERE user_id = player AND expiry IN (access_expiry, access_expiry_before) AND expires_at > clock_timestamp();
    IF session IS NULL THEN
        PERFORM remember_for_all(player, ARRAY[answer]);
    ELSIF NOT EXISTS (SELECT FROM known_states WHERE session_id = session AND answer = ANY (answers)) THEN
        PERFORM remember_states(session, player, ARRAY[answer]);
    END IF;
END
$$;
