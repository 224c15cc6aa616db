-- in batches
-- Marks the verified replays of public_replays, and adds all replays that 0042 has left out, 2,000 at a time. A batch
-- locks the table against the triggers that write it: a statement of a trigger that waits for the lock sees the batch,
-- and the batch sees what ended before. If the migration is interrupted, the next one marks again, and goes on adding.
DO $$
DECLARE
    first  record;  -- the place before the next batch
    last   record;  -- the place of its last row
    ends   timestamptz;  -- the table has all replays from then on,
    begins timestamptz;  -- and with the next batch from then on
BEGIN
    SELECT '-infinity'::timestamptz AS received_at, '00000000-0000-0000-0000-000000000000'::uuid AS id INTO first;
    LOOP
        PERFORM set_config('lock_timeout', '1s', true);
        LOCK TABLE public_replays IN SHARE ROW EXCLUSIVE MODE;
        SELECT received_at, id INTO last FROM (
            SELECT received_at, id FROM public_replays WHERE (received_at, id) > (first.received_at, first.id)
            ORDER BY received_at, id LIMIT 2000
        ) AS batch ORDER BY received_at DESC, id DESC LIMIT 1;
        EXIT WHEN NOT FOUND;
        UPDATE public_replays SET verified = true
        WHERE (received_at, id) > (first.received_at, first.id) AND (received_at, id) <= (last.received_at, last.id)
            AND NOT verified AND is_verified(id);
        first := last;
        COMMIT;
    END LOOP;
    LOOP
        PERFORM set_config('lock_timeout', '1s', true);
        LOCK TABLE public_replays IN SHARE ROW EXCLUSIVE MODE;
        SELECT since INTO ends FROM public_replays_begin;
        EXIT WHEN NOT FOUND;
        SELECT received_at INTO begins FROM replays WHERE unlisted IS NULL AND received_at < ends
        ORDER BY unlisted, received_at DESC, id DESC LIMIT 1 OFFSET 1999;
        INSERT INTO public_replays (received_at, id, verified)
        SELECT received_at, id, is_verified(id) FROM replays
        WHERE unlisted IS NULL AND received_at < ends AND received_at >= coalesce(begins, '-infinity')
            AND NOT EXISTS (SELECT FROM suspensions WHERE suspensions.user_id = replays.user_id)
        ON CONFLICT DO NOTHING;
        IF begins IS NULL THEN
            DELETE FROM public_replays_begin;
        ELSE
            UPDATE public_replays_begin SET since = begins;
        END IF;
        COMMIT;
    END LOOP;
END
$$;
