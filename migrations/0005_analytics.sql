-- What players' games report, if they were asked to. An event refers to a name by number and by nothing else: erasing
-- that one row makes all events that referred to it anonymous, however many they are.

CREATE TABLE analytics_names (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name    text   COLLATE "C" NOT NULL UNIQUE,
    -- The last day, in UTC, on which an event referred to it: tells when all of those have been pruned.
    seen_on date   NOT NULL
);

CREATE TABLE analytics_events (
    id          uuid        PRIMARY KEY,
    session_id  text        NOT NULL,
    -- Not a foreign key: that would make erasing a name visit every event.
    name_id     bigint,
    event_type  text        NOT NULL,
    -- The JSON as it was sent. Not jsonb, which may be much larger than what was sent.
    payload     text        NOT NULL,
    client_time timestamptz NOT NULL,
    received_at timestamptz NOT NULL
);

-- for pruning, which looks for the oldest
CREATE INDEX analytics_events_received ON analytics_events (received_at);
CREATE INDEX analytics_names_seen ON analytics_names (seen_on);
