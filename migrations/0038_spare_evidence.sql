-- concurrently
-- for the next best of a player on a board
CREATE INDEX CONCURRENTLY board_evidence_spare ON board_evidence (user_id, board, deficit, received_at, replay_id)
    WHERE NOT ranked AND board <> 'own';
