-- Less evidence for each replay: docs/verification.md "Boards". The boards of mode Classic get theirs from 'own', and have
-- a row for their ranked replays alone. Rows of before stay until the service replaces them, player by player.

-- In rows of the board 'own': the draw mode, if the replay is listed. Null in rows of before, and of all other boards.
ALTER TABLE board_evidence ADD COLUMN classic text;
