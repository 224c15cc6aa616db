-- What operators have done: docs/moderation.md "The record of acts". A row of admin_acts names nobody, and stays for good;
-- what names a player or their replay is in admin_notes, and goes with the account.

CREATE TABLE admin_acts (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- who: an admin over HTTP, somebody with a shell, or the service itself
    actor_kind text        NOT NULL CHECK (actor_kind IN ('admin', 'shell', 'service')),
    actor      text        NOT NULL,
    act        text        NOT NULL,
    target     text        NOT NULL CHECK (target IN ('player', 'replay')),
    reason     text        CHECK (
        reason IN ('name', 'avatar', 'cheating', 'spam', 'takeover', 'request', 'legal', 'other')
    ),
    -- of the request, over HTTP
    client     text,
    request_id text
);

CREATE TABLE admin_notes (
    act_id    bigint NOT NULL PRIMARY KEY REFERENCES admin_acts,
    user_id   uuid   NOT NULL REFERENCES users ON DELETE CASCADE,
    replay_id uuid,
    note      text,
    -- what the act has changed, in words
    before    text,
    after     text
);
CREATE INDEX admin_notes_player ON admin_notes (user_id, act_id);

-- A trigger, because the record has to withstand the service itself, and every statement that somebody brings into it.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the record of acts can''t be changed' USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER acts_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON admin_acts
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
