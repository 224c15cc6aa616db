-- Players, their live refresh tokens, and the rate limits that protect both.

CREATE TABLE users (
    id               uuid        PRIMARY KEY,
    -- "C": names are ASCII and compared byte by byte, so the index never depends on the server's locale
    username         text        COLLATE "C" NOT NULL UNIQUE,
    password_hash    text        NOT NULL,
    created_at       timestamptz NOT NULL,
    avatar_extension text        CHECK (avatar_extension IN ('jpg', 'png', 'webp', 'gif'))
);

CREATE TABLE refresh_tokens (
    jti        uuid        PRIMARY KEY,
    user_id    uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);

-- for reset and deletion, which remove all of one player's tokens
CREATE INDEX refresh_tokens_user ON refresh_tokens (user_id);
-- for pruning, which looks for the oldest
CREATE INDEX refresh_tokens_expiry ON refresh_tokens (expires_at);

-- The times of each client's latest admitted requests. UNLOGGED: losing them in a crash costs a minute of
-- strictness, and writing them never waits for the disk.
CREATE UNLOGGED TABLE rate_limits (
    bucket   text          COLLATE "C" PRIMARY KEY,
    hits     timestamptz[] NOT NULL,
    admitted boolean       NOT NULL
);
