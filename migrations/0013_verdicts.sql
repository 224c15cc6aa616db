-- What the checks of replays have found, and the queue of those to come (docs/verification.md "How replays get checked").
-- A replay without a verdict is pending, whether or not it is in the queue.

CREATE TABLE verdicts (
    replay_id     uuid        PRIMARY KEY REFERENCES replays ON DELETE CASCADE,
    status        text        NOT NULL CHECK (status IN ('verified', 'refuted', 'undecided', 'unreadable')),
    reason        text,
    -- these four only if it is verified
    ruleset       text,
    undos         int,
    score         int,
    moves         int,
    checked_at    timestamptz NOT NULL,
    -- the version of the engine that gave this verdict
    engine        int         NOT NULL,
    -- JSON, compressed by zlib; null unless it is verified, and short enough to be played back
    timeline      bytea,
    timeline_etag text        GENERATED ALWAYS AS ('"' || encode(sha256(timeline), 'hex') || '"') STORED,
    CHECK ((status = 'verified') = (num_nulls(ruleset, undos, score, moves) = 0))
);

ALTER TABLE verdicts ALTER COLUMN timeline SET STORAGE EXTERNAL;

-- for a newer engine, which checks again what was not verified
CREATE INDEX verdicts_not_verified ON verdicts (engine) WHERE status <> 'verified';

CREATE TABLE replay_checks (
    replay_id     uuid        PRIMARY KEY REFERENCES replays ON DELETE CASCADE,
    user_id       uuid        NOT NULL,
    received_at   timestamptz NOT NULL,
    -- Two queues in one table: replays to be checked literally, and those to be searched for undos.
    search        boolean     NOT NULL DEFAULT false,
    -- How many replays of this player were waiting when this one began to; see checks_ahead.
    ahead         int         NOT NULL,
    attempts      int         NOT NULL DEFAULT 0,
    -- Somebody checks it until then, by the clock of the database. Each claim has a time of its own, which names it.
    claimed_until timestamptz
);

-- exactly the order of the two queues
CREATE INDEX replay_checks_order ON replay_checks (search, ahead, received_at, replay_id);
CREATE INDEX replay_checks_player ON replay_checks (user_id, search);

-- Old replays, of a backlog or an import, come after all that are being uploaded, the newest first. Counting ends at 250,
-- so that an account with a long queue makes no upload slow.
CREATE FUNCTION old_check(received_at timestamptz) RETURNS int LANGUAGE sql STABLE AS $$
    SELECT 1000000 + least(greatest(extract(epoch FROM now() - received_at), 0), 2000000000)::int
$$;

CREATE FUNCTION checks_ahead(player uuid, searches boolean, received_at timestamptz) RETURNS int LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN received_at < now() - interval '1 day' THEN old_check(received_at) ELSE (
        SELECT count(*)::int
        FROM (SELECT FROM replay_checks WHERE user_id = player AND search = searches LIMIT 250) AS waiting
    ) END
$$;

CREATE FUNCTION enqueue_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO replay_checks (replay_id, user_id, received_at, ahead)
    VALUES (NEW.id, NEW.user_id, NEW.received_at, checks_ahead(NEW.user_id, false, NEW.received_at));
    RETURN NULL;
END
$$;

-- A trigger, so that the uploads of older nodes are checked as well.
CREATE TRIGGER replay_uploaded AFTER INSERT ON replays FOR EACH ROW EXECUTE FUNCTION enqueue_replay();

-- How far the search for replays without a verdict has come, which goes from the newest to the oldest, page by page, when
-- there is nothing else to check; at the end its position is -infinity. There are such replays from before this
-- migration, and whenever an operator says so. A verdict from before `checked_before` counts as none.
CREATE TABLE replay_sweep (
    id             int         PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    received_at    timestamptz NOT NULL DEFAULT 'infinity',
    replay_id      uuid        NOT NULL DEFAULT 'ffffffff-ffff-ffff-ffff-ffffffffffff',
    checked_before timestamptz NOT NULL DEFAULT '-infinity'
);

INSERT INTO replay_sweep DEFAULT VALUES;
