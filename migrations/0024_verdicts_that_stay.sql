-- A newer engine may take over a verdict as it is, by its own number alone: docs/verification.md "How replays get checked".
-- Only what boards show of a verdict places the replay again, because that locks the player.
CREATE OR REPLACE TRIGGER replay_checked AFTER INSERT OR UPDATE OF status, ruleset, score, boards ON verdicts
    FOR EACH ROW EXECUTE FUNCTION place_checked_replay();
