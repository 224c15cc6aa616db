-- concurrently
-- for one player's own, page by page: newest first for the list, oldest first for the export
CREATE INDEX CONCURRENTLY replays_of_player ON replays (user_id, received_at, id);
