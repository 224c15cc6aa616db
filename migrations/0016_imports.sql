-- What has been brought from an original server, so that it is brought once: docs/moving-in.md "Again and again".

-- No foreign keys: a row stays when what it names has been spent, ended or deleted here, which so stays gone.
CREATE TABLE imported (
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('user', 'replay', 'refresh', 'event')),
    id   uuid NOT NULL,
    PRIMARY KEY (kind, id)
);

-- True: the hash is that of the password's first 72 bytes, because the server that it comes from cut off the rest.
ALTER TABLE users ADD COLUMN password_cut boolean;

-- A trigger, so that a password which an older node replaces loses the mark as well.
CREATE FUNCTION forget_cut() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.password_cut := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER password_replaced BEFORE UPDATE OF password_hash ON users FOR EACH ROW
    WHEN (OLD.password_cut AND NEW.password_hash IS DISTINCT FROM OLD.password_hash) EXECUTE FUNCTION forget_cut();
