-- concurrently
-- exactly the order of the list of verified replays
CREATE INDEX CONCURRENTLY public_replays_verified ON public_replays (received_at, id) WHERE verified;
