-- concurrently
-- for a newer engine, which checks these again, and for taking away the evidence that they were
CREATE INDEX CONCURRENTLY verdicts_older_ruleset ON verdicts (engine, replay_id) WHERE ruleset <> '2026-05-19';
