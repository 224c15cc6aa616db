-- concurrently
-- for everybody's view of one player's replays, page by page, however many of them are unlisted
CREATE INDEX CONCURRENTLY replays_listed_of_player ON replays (user_id, received_at, id) WHERE unlisted IS NULL;
