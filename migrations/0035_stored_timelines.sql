-- concurrently
-- for the service, which deletes stored timelines
CREATE INDEX CONCURRENTLY verdicts_with_timeline ON verdicts (replay_id) WHERE timeline IS NOT NULL;
