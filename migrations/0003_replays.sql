-- Replays, kept as they came, with what the list of recent ones shows beside them.

CREATE TABLE replays (
    id           uuid        PRIMARY KEY,
    user_id      uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    received_at  timestamptz NOT NULL,
    -- The upload to the byte. Not json or jsonb: nothing is ever looked up in it.
    body         text        NOT NULL,
    size         int         NOT NULL,
    mode         text        NOT NULL,
    draw_mode    text        NOT NULL,
    -- JSON numbers as they were spelled
    final_score  text        NOT NULL,
    time_seconds text        NOT NULL,
    seed         text,
    recorded_at  text        NOT NULL
);

-- for the list of recent ones, newest first
CREATE INDEX replays_recent ON replays (received_at DESC, id DESC);
-- for one account's quota, without reading the rows
CREATE INDEX replays_user ON replays (user_id) INCLUDE (size);
