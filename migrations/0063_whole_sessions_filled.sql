-- in batches
-- Gives sessions that were imported, and not refreshed since, the id and the times that they have had without: the id of
-- their token, and the time 30 days before it expires.
DO $$
DECLARE
    last uuid := '00000000-0000-0000-0000-000000000000';
    ids  uuid[];
BEGIN
    LOOP
        SELECT array_agg(jti ORDER BY jti) INTO ids FROM (
            SELECT jti FROM refresh_tokens WHERE jti > last ORDER BY jti LIMIT 2000
        ) AS page;
        EXIT WHEN ids IS NULL;
        last := ids[array_length(ids, 1)];
        UPDATE refresh_tokens SET session_id = coalesce(session_id, jti),
            begun_at = coalesce(begun_at, expires_at - interval '30 days'),
            used_at = coalesce(used_at, expires_at - interval '30 days')
        WHERE jti = ANY (ids) AND num_nulls(session_id, begun_at, used_at) > 0;
        COMMIT;
    END LOOP;
END
$$;
