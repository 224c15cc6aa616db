-- concurrently
-- for operators who look for a player without knowing the case of the name
CREATE INDEX CONCURRENTLY users_folded ON users (lower(username));
