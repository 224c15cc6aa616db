-- concurrently
-- For the list of recent ones. The column comes first, though it is null in every entry: an order that begins with it is
-- one that replays_recent doesn't have, so the planner can't take that one and filter a million unlisted replays.
CREATE INDEX CONCURRENTLY replays_listed ON replays (unlisted, received_at DESC, id DESC) WHERE unlisted IS NULL;
