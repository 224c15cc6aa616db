-- What players push, and the board on which the best of them are seen.

CREATE TABLE sync_states (
    user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    -- The merged payload as JSON text. Not jsonb: that reorders keys, rewrites numbers and refuses \u0000, and fields
    -- of a newer client must come back as they were. Nor json: the server has checked it already.
    payload text NOT NULL
);

CREATE TABLE leaderboard (
    user_id        uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    display_name   text        NOT NULL,
    best_score     int         CHECK (best_score > 0),
    best_time_secs int         CHECK (best_time_secs > 0),
    recorded_at    timestamptz NOT NULL,
    visible        boolean     NOT NULL
);

-- Exactly the order of the list, so that its first hundred are read without a sort.
CREATE INDEX leaderboard_ranking
    ON leaderboard (best_score DESC NULLS LAST, best_time_secs ASC NULLS LAST, recorded_at, user_id)
    WHERE visible;
