-- concurrently
-- for the list of players by the space of their replays
CREATE INDEX CONCURRENTLY replay_usage_bytes ON replay_usage (used_bytes, user_id);
