-- Ways back into an account whose password is lost: docs/security.md "Lost passwords". Of both only the SHA-256 is stored.

-- A code that has been used is deleted; a new list replaces all codes of the player.
CREATE TABLE recovery_codes (
    user_id uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    digest  bytea       NOT NULL,
    made_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, digest)
);

-- What an operator hands to a player as a link: at most one for each player, which works once.
CREATE TABLE reset_tokens (
    user_id    uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    digest     bytea       NOT NULL UNIQUE,
    expires_at timestamptz NOT NULL
);

-- A trigger, because older nodes replace passwords too, and know nothing of links that must not outlive the password.
CREATE FUNCTION forget_reset_token() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM reset_tokens WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER password_changed AFTER UPDATE OF password_hash ON users FOR EACH ROW
    WHEN (OLD.password_hash IS DISTINCT FROM NEW.password_hash) EXECUTE FUNCTION forget_reset_token();
