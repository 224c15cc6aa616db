-- concurrently
-- for the engine that was the first to read `undo_places`, which looks at these again
CREATE INDEX CONCURRENTLY verdicts_without_undo_places ON verdicts (replay_id)
    WHERE ruleset = '2026-05-19' AND engine < 2;
