-- concurrently
-- for the list of players by the number of their replays
CREATE INDEX CONCURRENTLY replay_usage_replays ON replay_usage (replays, user_id) WHERE replays IS NOT NULL;
