-- Who signs in to administration over HTTP: docs/administration.md "Admins". Only commands make these rows. Of codes and
-- cookies the SHA-256 is stored.

CREATE TABLE admins (
    name     text        COLLATE "C" PRIMARY KEY,
    added_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- At most one for each admin, which begins one session.
CREATE TABLE admin_codes (
    admin      text        COLLATE "C" PRIMARY KEY REFERENCES admins ON DELETE CASCADE,
    digest     bytea       NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE TABLE admin_sessions (
    id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    admin      text        COLLATE "C" NOT NULL REFERENCES admins ON DELETE CASCADE,
    digest     bytea       NOT NULL UNIQUE,
    begun_at   timestamptz NOT NULL,
    -- up to a minute old
    used_at    timestamptz NOT NULL,
    client     text        NOT NULL,
    user_agent text
);
CREATE INDEX admin_sessions_admin ON admin_sessions (admin);
