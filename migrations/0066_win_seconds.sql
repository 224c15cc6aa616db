-- The time of all wins of a player who sends games by their ids: the average in the progress has whole seconds only.
-- It holds while it gives that average; a push, a join or a node of 1.1 may have changed the average since.
ALTER TABLE game_memory ADD COLUMN win_seconds bigint;
