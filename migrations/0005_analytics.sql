-- What players' games report, if they were asked to. An event refers to a name by number and by nothing else: erasing
-- that one row makes all events that referred to it anonymous, however many they are.

CREATE TABLE analytics_names (
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text   COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE analytics_events (
    id          uuid        PRIMARY KEY,
    session_id  text        NOT NULL,
    name_id     bigint,
    event_type  text        NOT NULL,
    payload     text        NOT NULL,
    client_time timestamptz NOT NULL,
    received_at timestamptz NOT NULL
);

-- for pruning, which looks for the oldest
CREATE INDEX analytics_events_received ON analytics_events (received_at);
