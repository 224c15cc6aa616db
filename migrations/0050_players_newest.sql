-- concurrently
-- for the list of players, newest first
CREATE INDEX CONCURRENTLY users_newest ON users (created_at, id);
