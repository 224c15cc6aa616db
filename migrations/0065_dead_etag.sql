-- Only statements of 1.0.0 named it.
ALTER TABLE verdicts DROP COLUMN timeline_etag;
