-- concurrently
-- for the service, which replaces these
CREATE INDEX CONCURRENTLY board_evidence_former ON board_evidence (user_id, replay_id)
    WHERE NOT ranked AND board IN ('classic', 'classic/DrawOne', 'classic/DrawThree');
