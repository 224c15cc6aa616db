-- What has happened to accounts, for operators: docs/administration.md "Players".

-- Rows are stored up to some seconds after the event, many at a time. `user_id` is null for a failed login with a name that
-- nobody has. `client` is the address as rate limits count it (docs/security.md "Addresses and proxies"); null for commands.
-- `times`: how often the same happened within a moment.
CREATE TABLE account_history (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    happened_at timestamptz NOT NULL,
    user_id     uuid        REFERENCES users ON DELETE CASCADE,
    event       text        COLLATE "C" NOT NULL,
    reason      text        COLLATE "C",
    client      text        COLLATE "C",
    times       int         NOT NULL
);
CREATE INDEX account_history_user ON account_history (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX account_history_client ON account_history (client, id) WHERE client IS NOT NULL;
