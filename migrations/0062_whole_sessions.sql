-- Each session has its id and its times. The defaults are for the import of nodes of 1.1, which gives neither. Older rows
-- follow in 0063.
ALTER TABLE refresh_tokens
    ALTER COLUMN session_id SET DEFAULT gen_random_uuid(),
    ALTER COLUMN begun_at SET DEFAULT now(),
    ALTER COLUMN used_at SET DEFAULT now(),
    ADD CONSTRAINT refresh_tokens_whole CHECK (num_nulls(session_id, begun_at, used_at) = 0) NOT VALID;

-- Only statements of 1.0.0 used these.
DROP INDEX verdicts_without_undo_places;
DROP INDEX verdicts_with_timeline;
DROP INDEX board_evidence_former;
