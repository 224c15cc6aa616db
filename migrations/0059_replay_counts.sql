-- in batches
-- Counts the replays of all players without a count, 100 players at a time. If the migration is interrupted, the next
-- one continues.
DO $$
DECLARE
    last uuid := '00000000-0000-0000-0000-000000000000';
    ids  uuid[];
BEGIN
    LOOP
        SELECT array_agg(user_id ORDER BY user_id) INTO ids FROM (
            SELECT DISTINCT user_id FROM replays WHERE user_id > last ORDER BY user_id LIMIT 100
        ) AS page;
        EXIT WHEN ids IS NULL;
        last := ids[array_length(ids, 1)];
        SELECT array_agg(user_id) INTO ids FROM unnest(ids) AS page (user_id) WHERE NOT EXISTS (
            SELECT FROM replay_usage WHERE replay_usage.user_id = page.user_id AND replays IS NOT NULL
        );
        CONTINUE WHEN ids IS NULL;
        -- An upload locks the player too: the count has what was stored before, and the trigger adds what comes later.
        PERFORM FROM users WHERE id = ANY (ids) ORDER BY id FOR NO KEY UPDATE;
        INSERT INTO replay_usage (user_id, used_bytes, replays)
        SELECT user_id, sum(replay_charge(size)), count(*) FROM replays WHERE user_id = ANY (ids)
        GROUP BY user_id ORDER BY user_id
        ON CONFLICT (user_id) DO UPDATE SET replays = excluded.replays;
        COMMIT;
    END LOOP;
END
$$;
