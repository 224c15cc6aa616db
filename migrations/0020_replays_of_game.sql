-- concurrently
-- for an upload that may have been stored before; not unique, because older nodes store it again
CREATE INDEX CONCURRENTLY replays_of_game ON replays (user_id, game_digest) WHERE game_digest IS NOT NULL;
