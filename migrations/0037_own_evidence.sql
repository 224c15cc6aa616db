-- concurrently
-- for the best of a player in mode Classic, and for the leaderboard, which asks whether a score is verified
CREATE INDEX CONCURRENTLY board_evidence_own ON board_evidence (user_id, deficit, classic, received_at, replay_id)
    WHERE board = 'own';
