-- What a timeline is made of, instead of the timeline: docs/verification.md "The timeline". Timelines that are stored
-- already, or that an older node stores, count before these two; the service deletes them little by little.
ALTER TABLE verdicts
    -- for each undo, the index of the recorded move before which it happened; null without undos
    ADD COLUMN undo_places smallint[],
    -- SHA-256 of the timeline as compressed by the checker; null where there is none
    ADD COLUMN timeline_digest bytea;
