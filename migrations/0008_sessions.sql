-- What a player sees of a session, and which access token is its own. A record of an older node has none of it, and
-- gets it when it is next refreshed.

ALTER TABLE refresh_tokens
    ADD COLUMN session_id    uuid,         -- stays when the token is refreshed; NULL: the jti
    ADD COLUMN begun_at      timestamptz,  -- NULL: 30 days before it expires
    ADD COLUMN used_at       timestamptz,  -- begun or refreshed last; NULL: likewise
    ADD COLUMN user_agent    text,
    ADD COLUMN access_expiry bigint;       -- `exp` of the access token that was issued with this record

-- `exp` of the player's access tokens of the last minutes, of sessions that have ended too: no two of them are equal.
ALTER TABLE users ADD COLUMN access_expiries bigint[];

-- The expiries with one more in front: the wanted one or, if it is taken, the nearest earlier one that is free, at most
-- a minute earlier. Remembered are those that a node can still want whose clock is five minutes slow.
CREATE FUNCTION with_access_expiry(taken bigint[], wanted bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    free bigint := wanted;
BEGIN
    WHILE free = ANY (taken) LOOP
        free := free - 1;
    END LOOP;
    IF free < wanted - 60 THEN
        RAISE EXCEPTION 'the player has begun or refreshed too many sessions within a minute' USING ERRCODE = 'SS503';
    END IF;
    RETURN free || ARRAY(SELECT each FROM unnest(taken) AS each WHERE each > wanted - 360);
END
$$;
