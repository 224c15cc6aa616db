-- Avatars live in the database: they move, back up, replicate and die with the account, and any node serves them.

CREATE TABLE avatars (
    user_id uuid  PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    image   bytea NOT NULL,
    -- as HTTP spells it; made here, so that it can't be another image's
    etag    text  NOT NULL GENERATED ALWAYS AS ('"' || encode(sha256(image), 'hex') || '"') STORED
);

-- the four formats are compressed already
ALTER TABLE avatars ALTER COLUMN image SET STORAGE EXTERNAL;
