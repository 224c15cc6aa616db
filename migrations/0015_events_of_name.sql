-- concurrently
-- for the events of one player, page by page, without reading everybody's
CREATE INDEX CONCURRENTLY analytics_events_of_name ON analytics_events (name_id, received_at, id)
    WHERE name_id IS NOT NULL;
