-- The schema of version 1.0.0, with which every new database begins. The numbered files after it change this schema.
--
-- Version 1.0.0 had this schema as 41 numbered files, which the list at the end of this file names. A new database
-- records these files as applied, so version 1.0.0 can serve it too. The tests compare this file with a database of
-- version 1.0.0: comments here may be edited, and nothing else.
--
-- Most rules are in solisync/rules/. A rule is here, in a trigger or a function, only if nodes of an older version must
-- obey it, or if one statement decides a race. The comment of each trigger and function gives the reason.

-- ---------------------------------------------------------------------------------------------------------------------
-- Statements

-- Returns true if a statement has written exactly one row; otherwise the transaction fails and runs again.
-- Statements run as EXECUTE: they take their snapshot before they wait for the lock of a table. If another transaction
-- rewrites the table during that wait, they find no row where there is one. Therefore each transaction that relies on
-- what it has read counts the rows that it writes.
CREATE FUNCTION exactly_one(written bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF written <> 1 THEN
        RAISE EXCEPTION 'the database has not the row that was read, or has one that was not'
            USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN true;
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Accounts and sessions

CREATE TABLE users (
    id               uuid        PRIMARY KEY,
    -- "C": usernames are ASCII and compared byte by byte, so the index does not depend on the locale of the server
    username         text        COLLATE "C" NOT NULL UNIQUE,
    password_hash    text        NOT NULL,
    created_at       timestamptz NOT NULL,
    avatar_extension text        CHECK (avatar_extension IN ('jpg', 'png', 'webp', 'gif')),
    -- `exp` of the access tokens of the last minutes, also of sessions that have ended; no two are equal
    access_expiries  bigint[],
    -- true: the hash covers only the first 72 bytes of the password, because the original server cut off the rest
    password_cut     boolean
);
-- for operators who search for a player without knowing the case of the username
CREATE INDEX users_folded ON users (lower(username));

-- One row for each session: its live refresh token. The columns after the first three may be null in rows that were
-- stored by a version before 1.0.0.
CREATE TABLE refresh_tokens (
    jti           uuid        PRIMARY KEY,
    user_id       uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    expires_at    timestamptz NOT NULL,
    session_id    uuid,         -- stays when the token is refreshed; null: the jti
    begun_at      timestamptz,  -- null: 30 days before it expires
    used_at       timestamptz,  -- begun or refreshed last; null: 30 days before it expires
    user_agent    text,
    access_expiry bigint        -- `exp` of the access token that was issued with this refresh token
);
-- for a reset and a deletion, which remove all refresh tokens of one player
CREATE INDEX refresh_tokens_user ON refresh_tokens (user_id);
-- for pruning, oldest first
CREATE INDEX refresh_tokens_expiry ON refresh_tokens (expires_at);

-- Returns the expiries with a new one in front: `wanted` or, if that is taken, the nearest earlier second that is free,
-- at most a minute earlier. Old expiries are kept while a node whose clock is five minutes slow can still want them.
-- A function, because one statement must decide between two logins of one player.
CREATE FUNCTION with_access_expiry(taken bigint[], wanted bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    free bigint := wanted;
BEGIN
    WHILE free = ANY (taken) LOOP
        free := free - 1;
    END LOOP;
    IF free < wanted - 60 THEN
        RAISE EXCEPTION 'the player has begun or refreshed too many sessions within a minute' USING ERRCODE = 'SS503';
    END IF;
    RETURN free || ARRAY(SELECT each FROM unnest(taken) AS each WHERE each > wanted - 360);
END
$$;

-- An imported hash of a cut password is marked only until the password changes.
-- A trigger, so that a password that an older node replaces loses the mark too.
CREATE FUNCTION forget_cut() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.password_cut := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER password_replaced BEFORE UPDATE OF password_hash ON users FOR EACH ROW
    WHEN (OLD.password_cut AND NEW.password_hash IS DISTINCT FROM OLD.password_hash) EXECUTE FUNCTION forget_cut();

-- The times of the latest admitted requests of each client. UNLOGGED: writes never wait for the disk, and a crash only
-- makes the limits lenient for a minute.
CREATE UNLOGGED TABLE rate_limits (
    bucket   text          COLLATE "C" PRIMARY KEY,
    hits     timestamptz[] NOT NULL,
    admitted boolean       NOT NULL
);

-- ---------------------------------------------------------------------------------------------------------------------
-- Lost passwords: docs/security.md "Lost passwords". Only the SHA-256 of a code or token is stored.

-- A used code is deleted; a new list replaces all codes of the player.
CREATE TABLE recovery_codes (
    user_id uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    digest  bytea       NOT NULL,
    made_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, digest)
);

-- The reset link that an operator gives to a player: at most one for each player, and it works once.
CREATE TABLE reset_tokens (
    user_id    uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    digest     bytea       NOT NULL UNIQUE,
    expires_at timestamptz NOT NULL
);

-- A reset link ends when the password changes.
-- A trigger, because an older node that replaces a password does not know reset links.
CREATE FUNCTION forget_reset_token() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM reset_tokens WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER password_changed AFTER UPDATE OF password_hash ON users FOR EACH ROW
    WHEN (OLD.password_hash IS DISTINCT FROM NEW.password_hash) EXECUTE FUNCTION forget_reset_token();

-- ---------------------------------------------------------------------------------------------------------------------
-- Avatars. They are in the database, so they are backed up, replicated and deleted with the account, and any node serves
-- them.

CREATE TABLE avatars (
    user_id uuid  PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    image   bytea NOT NULL,
    -- as HTTP spells it; generated, so that it always belongs to this image
    etag    text  NOT NULL GENERATED ALWAYS AS ('"' || encode(sha256(image), 'hex') || '"') STORED
);
-- the four formats are already compressed
ALTER TABLE avatars ALTER COLUMN image SET STORAGE EXTERNAL;

-- ---------------------------------------------------------------------------------------------------------------------
-- Progress: docs/sync.md "How games are counted"

CREATE TABLE sync_states (
    user_id  uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    -- The merged payload as JSON text. Not jsonb: that reorders keys, rewrites numbers and refuses \u0000, but fields of
    -- a newer client must be returned unchanged. Not json either: the service has already checked it.
    payload  text NOT NULL,
    -- every store by this version raises it
    revision bigint,
    -- what this version counts of the payload, as JSON; null if other software has stored the payload
    counted  text
);

-- The states that the device of each session may have. UNLOGGED: a pull that writes here does not wait for the disk, and
-- a crash costs exactness alone. No foreign keys, so that the end of a session does not wait for this table.
CREATE UNLOGGED TABLE known_states (
    session_id uuid   PRIMARY KEY,
    user_id    uuid   NOT NULL,
    pushed     text,            -- what the session pushed last; null: unknown, or no longer useful
    answers    text[] NOT NULL  -- the answers since then, newest last
);
CREATE INDEX known_states_user ON known_states (user_id);

-- Remembers states that the device of a session may have from now on. If there are too many, only the latest count: a
-- base that left out one of them would count its games twice.
CREATE FUNCTION remember_states(session uuid, player uuid, told text[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO known_states AS known (session_id, user_id, answers) VALUES (session, player, told)
    ON CONFLICT (session_id) DO UPDATE SET
        pushed = CASE WHEN cardinality(known.answers || told) <= 16 THEN known.pushed END,
        answers = CASE WHEN cardinality(known.answers || told) <= 16 THEN known.answers END || told
    WHERE NOT told <@ known.answers
$$;

-- Remembers states for all sessions of a player, for a token that names no session: its device may be any of them.
CREATE FUNCTION remember_for_all(player uuid, told text[]) RETURNS void LANGUAGE sql AS $$
    SELECT remember_states(session_id, player, told) FROM (
        SELECT session_id FROM refresh_tokens
        WHERE user_id = player AND session_id IS NOT NULL AND expires_at > clock_timestamp() ORDER BY session_id
    ) AS live
$$;

-- Remembers that a session receives `answer`; writes only what is new. A standby can neither write nor read this memory.
-- A function, so that the statement that reads the progress also remembers it.
CREATE FUNCTION remember_answer(player uuid, expiry bigint, answer text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    session uuid;
BEGIN
    IF answer IS NULL OR pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN
        RETURN;
    END IF;
    SELECT session_id INTO session FROM refresh_tokens
    WHERE user_id = player AND access_expiry = expiry AND expires_at > clock_timestamp();
    IF session IS NULL THEN
        PERFORM remember_for_all(player, ARRAY[answer]);
    ELSIF NOT EXISTS (SELECT FROM known_states WHERE session_id = session AND answer = ANY (answers)) THEN
        PERFORM remember_states(session, player, ARRAY[answer]);
    END IF;
END
$$;

-- Remembers an answer whose payload was stored by other software, so that what is counted of it was unknown. From now on
-- it is known, if the payload still has this digest.
CREATE FUNCTION remember_foreign(player uuid, expiry bigint, answer text, digest text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN
        RETURN;
    END IF;
    UPDATE sync_states SET counted = answer
    WHERE user_id = player AND counted IS NULL AND encode(sha256(convert_to(payload, 'UTF8')), 'hex') = digest;
    PERFORM remember_answer(player, expiry, answer);
END
$$;

-- A store that does not raise the revision (by an older node, or an operator) ends the memory of that player.
-- A trigger, because an older node does not know this memory.
CREATE FUNCTION forget_states() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM known_states WHERE user_id = OLD.user_id;
        RETURN OLD;
    END IF;
    IF TG_OP = 'INSERT' OR NEW.payload IS DISTINCT FROM OLD.payload THEN
        DELETE FROM known_states WHERE user_id = NEW.user_id;
        NEW.counted := NULL;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER foreign_insert BEFORE INSERT ON sync_states FOR EACH ROW
    WHEN (NEW.revision IS NULL) EXECUTE FUNCTION forget_states();
CREATE TRIGGER foreign_update BEFORE UPDATE ON sync_states FOR EACH ROW
    WHEN (NEW.revision IS NOT DISTINCT FROM OLD.revision) EXECUTE FUNCTION forget_states();
CREATE TRIGGER foreign_delete BEFORE DELETE ON sync_states FOR EACH ROW EXECUTE FUNCTION forget_states();

-- ---------------------------------------------------------------------------------------------------------------------
-- The leaderboard of reported scores

CREATE TABLE leaderboard (
    user_id        uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    display_name   text        NOT NULL,
    best_score     int         CHECK (best_score > 0),
    best_time_secs int         CHECK (best_time_secs > 0),
    recorded_at    timestamptz NOT NULL,
    visible        boolean     NOT NULL
);
-- exactly the order of the list, so that its first hundred entries are read without a sort
CREATE INDEX leaderboard_ranking
    ON leaderboard (best_score DESC NULLS LAST, best_time_secs ASC NULLS LAST, recorded_at, user_id)
    WHERE visible;

-- ---------------------------------------------------------------------------------------------------------------------
-- Replays

CREATE TABLE replays (
    id           uuid        PRIMARY KEY,
    user_id      uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    received_at  timestamptz NOT NULL,
    -- the upload, byte for byte; not json or jsonb, because no statement reads inside it
    body         text        NOT NULL,
    size         int         NOT NULL,
    mode         text        NOT NULL,
    draw_mode    text        NOT NULL,
    -- JSON numbers as they were spelled
    final_score  text        NOT NULL,
    time_seconds text        NOT NULL,
    seed         text,
    recorded_at  text        NOT NULL,
    -- The player or an operator has taken the replay off the public lists: true, or null. A column instead of a table,
    -- because only then an index finds the newest listed replays behind any number of unlisted ones. Null without a
    -- default, so that what an older node stores is listed.
    unlisted     boolean,
    -- SHA-256 of an upload that names its game: equal uploads are one replay (docs/protocol.md "Replays"). Null if the
    -- upload names no game, or if an older node stored it.
    game_digest  bytea,
    -- an operator has taken the replay off the lists: true, or null
    held         boolean
);
-- newest first
CREATE INDEX replays_recent ON replays (received_at DESC, id DESC);
-- for the quota of one account, without reading the rows
CREATE INDEX replays_user ON replays (user_id) INCLUDE (size);
-- For the list of recent replays. `unlisted` comes first although it is null in every entry: the planner can't use
-- replays_recent for an order that begins with it, and so can't filter a million unlisted replays.
CREATE INDEX replays_listed ON replays (unlisted, received_at DESC, id DESC) WHERE unlisted IS NULL;
-- for a player's own replays, page by page: newest first for the list, oldest first for the export
CREATE INDEX replays_of_player ON replays (user_id, received_at, id);
-- for an upload that may be stored already; not unique, because an older node stores it again
CREATE INDEX replays_of_game ON replays (user_id, game_digest) WHERE game_digest IS NOT NULL;
-- for the public view of one player's replays, page by page, however many of them are unlisted
CREATE INDEX replays_listed_of_player ON replays (user_id, received_at, id) WHERE unlisted IS NULL;

-- The bytes that the replays of each player are charged, so that an upload does not add them up. A player without a row
-- has not been counted: the next upload counts, while it holds the lock of the player's row.
CREATE TABLE replay_usage (
    user_id    uuid   PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    used_bytes bigint NOT NULL
);

-- The bytes that a replay is charged. A small replay costs more than its bytes: a row, and entries in several indexes.
CREATE FUNCTION replay_charge(size int) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT greatest(size, 4096)::bigint';

-- Keeps the number of bytes. A trigger, so that the uploads of older nodes count too.
CREATE FUNCTION count_replay() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    player uuid   := CASE TG_OP WHEN 'INSERT' THEN NEW.user_id ELSE OLD.user_id END;
    charge bigint := CASE TG_OP WHEN 'INSERT' THEN replay_charge(NEW.size) ELSE -replay_charge(OLD.size) END;
BEGIN
    -- Whoever counts for the first time holds this lock: then the change is in what was counted, or is added to it.
    PERFORM FROM users WHERE id = player FOR NO KEY UPDATE;
    UPDATE replay_usage SET used_bytes = used_bytes + charge WHERE user_id = player;
    RETURN NULL;
END
$$;
CREATE TRIGGER replay_stored AFTER INSERT ON replays FOR EACH ROW EXECUTE FUNCTION count_replay();
-- Not while a player is deleted: that deletes the row of replay_usage too, and may delete any number of replays.
CREATE TRIGGER replay_deleted AFTER DELETE ON replays FOR EACH ROW WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION count_replay();

-- ---------------------------------------------------------------------------------------------------------------------
-- Verdicts on replays, and the queue of checks: docs/verification.md "How replays get checked"

-- A replay without a verdict is pending, whether or not it is in the queue.
CREATE TABLE verdicts (
    replay_id       uuid        PRIMARY KEY REFERENCES replays ON DELETE CASCADE,
    status          text        NOT NULL CHECK (status IN ('verified', 'refuted', 'undecided', 'unreadable')),
    reason          text,
    -- these four only if the status is verified
    ruleset         text,
    undos           int,
    score           int,
    moves           int,
    checked_at      timestamptz NOT NULL,
    -- the version of the engine that gave this verdict
    engine          int         NOT NULL,
    -- Versions before 1.0.0 stored timelines here. The statements of 1.0.0 name both columns.
    timeline        bytea,
    timeline_etag   text        GENERATED ALWAYS AS ('"' || encode(sha256(timeline), 'hex') || '"') STORED,
    -- the boards of days that the replay belongs to; null unless the status is verified
    boards          text[],
    -- for each undo, the index of the recorded move before which it happened; null without undos
    undo_places     smallint[],
    -- SHA-256 of the timeline as the checker compresses it; null without a timeline
    timeline_digest bytea,
    CHECK ((status = 'verified') = (num_nulls(ruleset, undos, score, moves) = 0))
);
ALTER TABLE verdicts ALTER COLUMN timeline SET STORAGE EXTERNAL;
-- for a newer engine, which checks again what was not verified
CREATE INDEX verdicts_not_verified ON verdicts (engine) WHERE status <> 'verified';
-- for a newer engine, which checks these again
CREATE INDEX verdicts_older_ruleset ON verdicts (engine, replay_id) WHERE ruleset <> '2026-05-19';
-- for statements of 1.0.0 alone
CREATE INDEX verdicts_without_undo_places ON verdicts (replay_id)
    WHERE ruleset = '2026-05-19' AND engine < 2;
CREATE INDEX verdicts_with_timeline ON verdicts (replay_id) WHERE timeline IS NOT NULL;

-- Two queues in one table: replays to check literally, and replays to search for undos.
CREATE TABLE replay_checks (
    replay_id     uuid        PRIMARY KEY REFERENCES replays ON DELETE CASCADE,
    user_id       uuid        NOT NULL,
    received_at   timestamptz NOT NULL,
    search        boolean     NOT NULL DEFAULT false,
    -- the number of the player's replays that were waiting when this one entered the queue: see checks_ahead
    ahead         int         NOT NULL,
    attempts      int         NOT NULL DEFAULT 0,
    -- until then a checker has claimed it, by the clock of the database; each claim has a different time, which names it
    claimed_until timestamptz
);
-- exactly the order of the two queues
CREATE INDEX replay_checks_order ON replay_checks (search, ahead, received_at, replay_id);
CREATE INDEX replay_checks_player ON replay_checks (user_id, search);

-- Searches that ended within the last hour; housekeeping deletes older rows. UNLOGGED: a crash only makes the queue less
-- fair for an hour.
CREATE UNLOGGED TABLE recent_searches (
    user_id  uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    ended_at timestamptz NOT NULL
);
CREATE INDEX recent_searches_player ON recent_searches (user_id, ended_at);
CREATE INDEX recent_searches_ended ON recent_searches (ended_at);

-- The place of an old replay, of a backlog or an import: after all new uploads, newest first.
CREATE FUNCTION old_check(received_at timestamptz) RETURNS int LANGUAGE sql STABLE AS $$
    SELECT 1000000 + least(greatest(extract(epoch FROM now() - received_at), 0), 2000000000)::int
$$;

-- The place of a check in its queue: the number of the player's checks ahead of it. Searches of accounts younger than a
-- day come after all other searches. Counting ends at 250, so that an account with a long queue makes no upload slow.
CREATE FUNCTION checks_ahead(player uuid, searches boolean, received_at timestamptz) RETURNS int
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN received_at < now() - interval '1 day' THEN old_check(received_at) ELSE (
        SELECT count(*)::int FROM (
            SELECT FROM replay_checks WHERE user_id = player AND search = searches
            UNION ALL
            SELECT FROM recent_searches WHERE searches AND user_id = player AND ended_at > now() - interval '1 hour'
            LIMIT 250
        ) AS counted
    ) + CASE WHEN searches AND (SELECT created_at > now() - interval '1 day' FROM users WHERE id = player)
        THEN 500000 ELSE 0 END
    END
$$;

-- Every new replay enters the queue. A trigger, so that the uploads of older nodes are checked too.
CREATE FUNCTION enqueue_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO replay_checks (replay_id, user_id, received_at, ahead)
    VALUES (NEW.id, NEW.user_id, NEW.received_at, checks_ahead(NEW.user_id, false, NEW.received_at));
    RETURN NULL;
END
$$;
CREATE TRIGGER replay_uploaded AFTER INSERT ON replays FOR EACH ROW EXECUTE FUNCTION enqueue_replay();

-- The end of each search is remembered. A trigger, so that the searches of older nodes count too, and those whose replay
-- is deleted. Searches of old replays don't count, because no player asked for them. Searches of a player who is being
-- deleted don't count either, because the player's row no longer exists.
CREATE FUNCTION remember_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO recent_searches (user_id, ended_at) SELECT id, clock_timestamp() FROM users WHERE id = OLD.user_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER search_ended AFTER DELETE ON replay_checks FOR EACH ROW
    WHEN (OLD.search AND OLD.attempts > 0 AND OLD.ahead < 1000000) EXECUTE FUNCTION remember_search();

-- The position of the sweep for replays without a verdict. The sweep goes from newest to oldest, page by page, while the
-- queue is empty; at the end its position is -infinity. Such replays exist after an import, or when an operator asks for
-- new checks. A verdict from before `checked_before` counts as none.
CREATE TABLE replay_sweep (
    id             int         PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    received_at    timestamptz NOT NULL DEFAULT 'infinity',
    replay_id      uuid        NOT NULL DEFAULT 'ffffffff-ffff-ffff-ffff-ffffffffffff',
    checked_before timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO replay_sweep DEFAULT VALUES;

-- ---------------------------------------------------------------------------------------------------------------------
-- Boards of verified replays: docs/verification.md "Boards". Each verified replay is evidence on some boards. On each of
-- them the best evidence of a player who has opted in is ranked. Triggers keep this true, so that every deletion,
-- unlisting, new check and opt-in corrects all boards in its own transaction, also on an older node.

CREATE TABLE board_evidence (
    board       text        COLLATE "C" NOT NULL,
    user_id     uuid        NOT NULL,
    deficit     int         NOT NULL,  -- minus the score, so that all columns of a board's order ascend
    received_at timestamptz NOT NULL,
    -- Evidence is deleted with its replay, which is deleted with its player. A foreign key on user_id would need an
    -- index of all rows.
    replay_id   uuid        NOT NULL REFERENCES replays ON DELETE CASCADE,
    ranked      boolean     NOT NULL,
    -- In rows of the board 'own': the draw mode if the replay is listed. Null otherwise.
    classic     text,
    PRIMARY KEY (replay_id, board)
);
-- a player has at most one place on a board
CREATE UNIQUE INDEX board_evidence_place ON board_evidence (user_id, board) WHERE ranked;
-- exactly the order of the boards
CREATE INDEX board_evidence_ranking ON board_evidence (board, deficit, received_at, replay_id) WHERE ranked;
-- for a player's best in mode Classic, and for the leaderboard, which shows whether a score is verified
CREATE INDEX board_evidence_own ON board_evidence (user_id, deficit, classic, received_at, replay_id)
    WHERE board = 'own';
-- for a player's next best on a board
CREATE INDEX board_evidence_spare ON board_evidence (user_id, board, deficit, received_at, replay_id)
    WHERE NOT ranked AND board <> 'own';
-- for statements of 1.0.0 alone
CREATE INDEX board_evidence_former ON board_evidence (user_id, replay_id)
    WHERE NOT ranked AND board IN ('classic', 'classic/DrawOne', 'classic/DrawThree');

-- Removes a player's ranks on some boards. The boards of mode Classic have rows for ranked replays alone; there the row
-- is deleted if the row of the board 'own' can bring it back.
CREATE FUNCTION unrank(player uuid, boards text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM board_evidence AS place
    WHERE user_id = player AND board = ANY (boards) AND ranked AND board LIKE 'classic%' AND EXISTS (
        SELECT FROM board_evidence AS own
        WHERE own.replay_id = place.replay_id AND own.board = 'own' AND classic IS NOT NULL
    );
    UPDATE board_evidence SET ranked = false WHERE user_id = player AND board = ANY (boards) AND ranked;
END
$$;

-- Ranks the best evidence of a player on some of their boards, or none if they have not opted in. The board 'own' has
-- everything that the player has verified in mode Classic, also unlisted replays; it ranks no replay.
CREATE FUNCTION rank_player(player uuid, changed text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    -- shared, because a node of an older version opts out without the lock of the player's row
    opted_in boolean := EXISTS (
        SELECT FROM (SELECT visible FROM leaderboard WHERE user_id = player FOR SHARE) AS entry WHERE visible
    );
    name   text;
    former uuid;
    best   record;
BEGIN
    FOR name IN SELECT DISTINCT board FROM unnest(changed) AS board WHERE board <> 'own' LOOP
        SELECT replay_id INTO former FROM board_evidence WHERE user_id = player AND board = name AND ranked;
        SELECT * INTO best FROM (
            (SELECT replay_id, deficit, received_at FROM board_evidence
            WHERE user_id = player AND board = name AND ranked)
            UNION ALL
            (SELECT replay_id, deficit, received_at FROM board_evidence
            WHERE user_id = player AND board = name AND NOT ranked AND board <> 'own'
            ORDER BY deficit, received_at, replay_id LIMIT 1)
            UNION ALL
            (SELECT replay_id, deficit, received_at FROM board_evidence
            WHERE user_id = player AND board = 'own' AND classic = 'DrawOne' AND name IN ('classic', 'classic/DrawOne')
            ORDER BY deficit, received_at, replay_id LIMIT 1)
            UNION ALL
            (SELECT replay_id, deficit, received_at FROM board_evidence
            WHERE user_id = player AND board = 'own' AND classic = 'DrawThree'
                AND name IN ('classic', 'classic/DrawThree')
            ORDER BY deficit, received_at, replay_id LIMIT 1)
        ) AS candidate ORDER BY deficit, received_at, replay_id LIMIT 1;
        -- first of all, because a player must not have two places for a moment
        IF NOT opted_in OR former <> best.replay_id THEN
            PERFORM unrank(player, ARRAY[name]);
        END IF;
        IF opted_in AND best.replay_id IS DISTINCT FROM former THEN
            INSERT INTO board_evidence (board, user_id, deficit, received_at, replay_id, ranked)
            VALUES (name, player, best.deficit, best.received_at, best.replay_id, true)
            ON CONFLICT (replay_id, board) DO UPDATE SET ranked = true;
        END IF;
    END LOOP;
END
$$;

-- Returns the boards that lose or gain something with rows of these boards.
CREATE FUNCTION boards_of_rows(boards text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN 'own' = ANY (boards) THEN boards || ARRAY['classic', 'classic/DrawOne', 'classic/DrawThree']
        ELSE boards END
$$;

-- Makes the evidence of a replay agree with its verdict, and with whether it is listed. Only games of the preferred
-- ruleset count, whose scores have a bound: docs/verification.md "Boards" has the reason.
CREATE FUNCTION place_replay(replay uuid, player uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    opted_in boolean;
    former   text[];
    placed   text[];
BEGIN
    PERFORM FROM users WHERE id = player FOR NO KEY UPDATE;
    SELECT visible INTO opted_in FROM leaderboard WHERE user_id = player FOR SHARE;
    WITH gone AS (DELETE FROM board_evidence WHERE replay_id = replay RETURNING board)
    SELECT array_agg(board) INTO former FROM gone;
    WITH new AS (
        INSERT INTO board_evidence (board, user_id, deficit, received_at, replay_id, ranked, classic)
        SELECT board, player, -score, received_at, replay,
            -- rank_player corrects it if a spare is better
            opted_in IS TRUE AND board <> 'own' AND NOT EXISTS (
                SELECT FROM board_evidence AS place
                WHERE place.user_id = player AND place.board = stands.board AND place.ranked
            ),
            CASE WHEN board = 'own' AND unlisted IS NULL THEN draw_mode END
        FROM replays JOIN verdicts ON replay_id = id CROSS JOIN LATERAL (
            SELECT 'own' AS board WHERE mode = 'Classic'
            UNION ALL
            SELECT 'deal/' || seed || '/' || draw_mode WHERE mode <> 'Zen' AND seed IS NOT NULL AND unlisted IS NULL
            UNION ALL
            SELECT day FROM unnest(boards) AS day WHERE day LIKE 'daily/%' AND unlisted IS NULL
        ) AS stands
        WHERE id = replay AND status = 'verified' AND ruleset = '2026-05-19'
        RETURNING board
    )
    SELECT array_agg(board) INTO placed FROM new;
    PERFORM rank_player(player, boards_of_rows(former || placed));
END
$$;

-- A verdict places its replay. A trigger, because an older node writes verdicts and no evidence. Only the columns that
-- boards show count, because placing a replay locks its player: a newer engine may raise its number alone.
CREATE FUNCTION place_checked_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM place_replay(id, user_id) FROM replays WHERE id = NEW.replay_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER replay_checked AFTER INSERT OR UPDATE OF status, ruleset, score, boards ON verdicts
    FOR EACH ROW EXECUTE FUNCTION place_checked_replay();

-- An unlisted replay is on no board. A trigger, because an older node changes the list alone.
CREATE FUNCTION place_unlisted_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM place_replay(NEW.id, NEW.user_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER replay_unlisted AFTER UPDATE OF unlisted ON replays FOR EACH ROW
    WHEN (OLD.unlisted IS DISTINCT FROM NEW.unlisted) EXECUTE FUNCTION place_unlisted_replay();

-- A deleted replay gives its places to the player's next best one, before its evidence is deleted by cascade. Not while
-- a player is deleted, with whom all evidence goes. A trigger, because older nodes delete replays and accounts too.
CREATE FUNCTION displace_replay() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed text[];
BEGIN
    PERFORM FROM users WHERE id = OLD.user_id FOR NO KEY UPDATE;
    PERFORM FROM leaderboard WHERE user_id = OLD.user_id FOR SHARE;
    WITH gone AS (DELETE FROM board_evidence WHERE replay_id = OLD.id RETURNING board)
    SELECT array_agg(board) INTO changed FROM gone;
    PERFORM rank_player(OLD.user_id, boards_of_rows(changed));
    RETURN OLD;
END
$$;
CREATE TRIGGER replay_displaced BEFORE DELETE ON replays FOR EACH ROW WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION displace_replay();

-- Only players who have opted in have places on boards. A trigger, because older nodes opt players in and out too.
CREATE FUNCTION rank_whoever_opts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    player uuid := CASE TG_OP WHEN 'DELETE' THEN OLD.user_id ELSE NEW.user_id END;
BEGIN
    PERFORM unrank(player, (SELECT array_agg(board) FROM board_evidence WHERE user_id = player AND ranked));
    IF TG_OP <> 'DELETE' AND NEW.visible THEN
        UPDATE board_evidence AS evidence SET ranked = true
        FROM (
            SELECT DISTINCT ON (board) board, replay_id FROM board_evidence
            WHERE user_id = player AND NOT ranked AND board <> 'own'
            ORDER BY board, deficit, received_at, replay_id
        ) AS best
        WHERE evidence.replay_id = best.replay_id AND evidence.board = best.board;
        PERFORM rank_player(player, ARRAY['classic', 'classic/DrawOne', 'classic/DrawThree']);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER player_opted AFTER INSERT ON leaderboard FOR EACH ROW
    WHEN (NEW.visible) EXECUTE FUNCTION rank_whoever_opts();
CREATE TRIGGER player_opted_again AFTER UPDATE OF visible ON leaderboard FOR EACH ROW
    WHEN (OLD.visible <> NEW.visible) EXECUTE FUNCTION rank_whoever_opts();
CREATE TRIGGER player_removed AFTER DELETE ON leaderboard FOR EACH ROW WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION rank_whoever_opts();

-- ---------------------------------------------------------------------------------------------------------------------
-- Suspensions, cutoffs of access tokens, locks and held replays: docs/moderation.md. Triggers decide what nodes of an
-- older version must obey too, which know none of these tables.

CREATE TABLE suspensions (
    user_id     uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    since       timestamptz NOT NULL,
    until       timestamptz,
    message     text,
    -- whether the entry on the leaderboard becomes visible again afterwards
    was_visible boolean     NOT NULL
);
CREATE INDEX suspensions_until ON suspensions (until) WHERE until IS NOT NULL;

-- Access tokens whose `exp` is not above the cutoff are refused.
CREATE TABLE access_cutoffs (
    user_id uuid   PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    cutoff  bigint NOT NULL
);

CREATE TABLE profile_locks (
    user_id uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    since   timestamptz NOT NULL
);

-- Each change of a suspension or a cutoff raises this number, so that processes load these tables only after a change.
-- A row instead of a sequence: the number must become visible together with the change. It rises by a random step, so
-- that a number that a failover has lost does not return with other contents.
CREATE TABLE restriction_number (
    id     int    PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    number bigint NOT NULL
);

-- Raises the number. A trigger, because an older node that deletes an account deletes rows here too.
CREATE FUNCTION raise_restriction_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO restriction_number AS known (number) VALUES (1 + floor(random() * 1000000)::bigint)
    ON CONFLICT (id) DO UPDATE SET number = known.number + excluded.number;
    RETURN NULL;
END
$$;
-- For each row, because every deletion of an account is a statement on both tables, mostly of no row.
CREATE TRIGGER suspension_changed AFTER INSERT OR UPDATE OR DELETE ON suspensions
    FOR EACH ROW EXECUTE FUNCTION raise_restriction_number();
CREATE TRIGGER cutoff_changed AFTER INSERT OR UPDATE OR DELETE ON access_cutoffs
    FOR EACH ROW EXECUTE FUNCTION raise_restriction_number();

-- A suspended player begins and refreshes no session. A trigger, because an older node knows no suspensions. A statement
-- that inserts a row holds the lock of the player's row, as the act of suspending does: each statement of a volatile
-- function sees what was committed before.
CREATE FUNCTION refuse_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN EXISTS (SELECT FROM suspensions WHERE user_id = NEW.user_id) THEN NULL ELSE NEW END;
END
$$;
CREATE TRIGGER session_refused BEFORE INSERT ON refresh_tokens FOR EACH ROW EXECUTE FUNCTION refuse_session();

-- An access token that is issued after a cutoff expires later than the cutoff, also if the clock of a node is slow.
-- A trigger, because an older node knows no cutoffs.
CREATE FUNCTION issue_above_cutoff() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    free bigint := (SELECT cutoff + 1 FROM access_cutoffs WHERE user_id = NEW.id);
BEGIN
    IF NEW.access_expiries[1] < free THEN
        WHILE free = ANY (OLD.access_expiries) LOOP
            free := free + 1;
        END LOOP;
        NEW.access_expiries := free || NEW.access_expiries[2:];
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER access_issued BEFORE UPDATE OF access_expiries ON users
    FOR EACH ROW EXECUTE FUNCTION issue_above_cutoff();

-- The entry of a suspended player is not visible. The entry of a locked player does not become visible and keeps its
-- name, unless an operator changes it: the act sets `solisync.act` until the end of its transaction. A trigger, because
-- an older node lets these players opt in.
CREATE FUNCTION restrict_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM suspensions WHERE user_id = NEW.user_id) THEN
        NEW.visible := false;
    END IF;
    IF coalesce(current_setting('solisync.act', true), '') = ''
            AND EXISTS (SELECT FROM profile_locks WHERE user_id = NEW.user_id) THEN
        NEW.visible := NEW.visible AND TG_OP = 'UPDATE' AND OLD.visible;
        IF TG_OP = 'UPDATE' THEN
            NEW.display_name := OLD.display_name;
        END IF;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER entry_restricted BEFORE INSERT OR UPDATE OF visible, display_name ON leaderboard
    FOR EACH ROW EXECUTE FUNCTION restrict_entry();

-- What a locked player uploads is held. A trigger, because an older node stores replays without knowing locks.
CREATE FUNCTION hold_upload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM profile_locks WHERE user_id = NEW.user_id) THEN
        NEW.held := true;
        NEW.unlisted := true;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER upload_held BEFORE INSERT ON replays FOR EACH ROW EXECUTE FUNCTION hold_upload();

-- A held replay is not listed. A trigger, because an older node lists replays without knowing which are held.
CREATE FUNCTION keep_unlisted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.unlisted := true;
    RETURN NEW;
END
$$;
CREATE TRIGGER held_unlisted BEFORE UPDATE OF unlisted ON replays
    FOR EACH ROW WHEN (NEW.held AND NEW.unlisted IS NULL) EXECUTE FUNCTION keep_unlisted();

-- ---------------------------------------------------------------------------------------------------------------------
-- The record of acts: docs/moderation.md "The record of acts"

-- What operators have done. A row names no player and is never deleted.
CREATE TABLE admin_acts (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- an admin in the console, an operator with a shell, or the service itself
    actor_kind text        NOT NULL CHECK (actor_kind IN ('admin', 'shell', 'service')),
    actor      text        NOT NULL,
    act        text        NOT NULL,
    target     text        NOT NULL CHECK (target IN ('player', 'replay')),
    reason     text        CHECK (
        reason IN ('name', 'avatar', 'cheating', 'spam', 'takeover', 'request', 'legal', 'other')
    ),
    -- of the request, in the console
    client     text,
    request_id text
);

-- What names a player or their replay is here, and is deleted with the account.
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

-- A trigger, because the record must withstand the service itself, and every statement that is injected into it.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the record of acts can''t be changed' USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER acts_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON admin_acts
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- ---------------------------------------------------------------------------------------------------------------------
-- The history of accounts, for operators: docs/administration.md "Players"

-- Rows are stored up to some seconds after the event, many at a time.
CREATE TABLE account_history (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    happened_at timestamptz NOT NULL,
    -- null for a failed login with an unknown username
    user_id     uuid        REFERENCES users ON DELETE CASCADE,
    event       text        COLLATE "C" NOT NULL,
    reason      text        COLLATE "C",
    -- the address as rate limits count it (docs/security.md "Addresses and proxies"); null for commands
    client      text        COLLATE "C",
    -- how often the same happened within a moment
    times       int         NOT NULL
);
CREATE INDEX account_history_user ON account_history (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX account_history_client ON account_history (client, id) WHERE client IS NOT NULL;
-- for the lists of recent changes that other players see, page by page, newest first
CREATE INDEX account_history_review ON account_history (event, id)
    WHERE event IN ('register', 'opted in', 'avatar changed');

-- ---------------------------------------------------------------------------------------------------------------------
-- Admins of the console: docs/administration.md "Admins". Only commands insert admins and codes. Only the SHA-256 of a
-- code or cookie is stored.

CREATE TABLE admins (
    name     text        COLLATE "C" PRIMARY KEY,
    added_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- At most one code for each admin, which begins one session.
CREATE TABLE admin_codes (
    admin      text        COLLATE "C" PRIMARY KEY REFERENCES admins ON DELETE CASCADE,
    digest     bytea       NOT NULL,
    expires_at timestamptz NOT NULL,
    -- the number of sign-ins with a wrong code: after too many, from any addresses, this code no longer works
    -- (docs/console.md "Signing in"); a newer code begins at zero
    refused    int         NOT NULL DEFAULT 0
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

-- ---------------------------------------------------------------------------------------------------------------------
-- Analytics. An event refers to a name by number alone: deleting that one row makes all its events anonymous, however
-- many there are.

CREATE TABLE analytics_names (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name    text   COLLATE "C" NOT NULL UNIQUE,
    -- the last day, in UTC, on which an event referred to it: after that many days all of its events have been pruned
    seen_on date   NOT NULL
);
CREATE INDEX analytics_names_seen ON analytics_names (seen_on);

CREATE TABLE analytics_events (
    id          uuid        PRIMARY KEY,
    session_id  text        NOT NULL,
    -- not a foreign key: then deleting a name would visit every event
    name_id     bigint,
    event_type  text        NOT NULL,
    -- the JSON as it was sent; not jsonb, which may be much larger
    payload     text        NOT NULL,
    client_time timestamptz NOT NULL,
    received_at timestamptz NOT NULL
);
-- for pruning, oldest first
CREATE INDEX analytics_events_received ON analytics_events (received_at);
-- for the events of one player, page by page
CREATE INDEX analytics_events_of_name ON analytics_events (name_id, received_at, id)
    WHERE name_id IS NOT NULL;

-- ---------------------------------------------------------------------------------------------------------------------
-- Imports from an original server: docs/moving-in.md "Again and again"

-- What has been imported, so that it is imported once. No foreign keys: a row stays when its subject has been spent,
-- ended or deleted here, so that the next import does not bring it back.
CREATE TABLE imported (
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('user', 'replay', 'refresh', 'event', 'avatar')),
    id   uuid NOT NULL,
    PRIMARY KEY (kind, id)
);

-- ---------------------------------------------------------------------------------------------------------------------
-- The files of version 1.0.0 that led to this schema, each with its SHA-256. A new database records them as applied.
-- 0001_accounts.sql f11109914d993b39afbde9898504af179f633c726cc4c641fe82dde08cd40e48
-- 0002_progress.sql ffbb546b033f075e5056ede9a37ead91183282681ee3d5caf3f411bf30471972
-- 0003_replays.sql 91b8eb181fa568ac201a2773a4ae6da0be19442ab99dc5d1c8315bea03cdb44a
-- 0004_avatars.sql 16abf61dcc2478f1014ab7869285139f5314cc408cfb867c8b724ef709cef927
-- 0005_analytics.sql 3ed8e38d3b5a78f5409a09001ef1c24612053ecbfe99cccc07e722c9d37af6d9
-- 0006_exactly_one.sql 2b50a18fa2250c635b5a2a0602c8d934a55aad89ec359f24fbda0d8808c05a34
-- 0007_replay_usage.sql 1637e73f9ce336df9eecc4263504958de5923e3eae1352c741a89ef0eb8fd7f8
-- 0008_sessions.sql 347898523178cf70dfed9da1cebc6a906a4a4eea5bd22afa9b34cb698350bfa4
-- 0009_unlisted_replays.sql cadd3d5f483e040db5ebfdb7e436f7ad6380b3813f41e0153d20949073df44d4
-- 0010_listed_replays.sql 9042f2debe9026ca4d4e8975ec6c33d7a68612300e8fc1fd7a2be8a08b6b90e6
-- 0011_replays_of_player.sql 3cfe14b5c3a35daf091bc0bb24be69ba8a0188bd73c41729ca141dde60f30393
-- 0012_known_states.sql 5337319c358e44415168514a0021c8032efef229a8f30655069056f2173e793e
-- 0013_verdicts.sql 5f19642bb98d722ca1275d6811f69a6d80d63c7a64786b9e5493aeb88c28c32d
-- 0014_boards.sql f5de193931360cb6802d8df583b6451c62d9e00744a25108a95bf16a240549d2
-- 0015_events_of_name.sql 57d82857c9eda3d2128c9249ece6b9c7871b130edf81170917a158b48e161e12
-- 0016_imports.sql 8806fde441936744666eb886c89b81de6e8400a232c345aece8c3f02261e134d
-- 0017_ranking_one_ruleset.sql 06f2b5eb5d0c510130265af5dde94336169909a1e3a24d8e14349869eca214d3
-- 0018_verdicts_of_older_rulesets.sql 5cfd701672a694602f384b775e66e16f984392ebaca56c36e9aa507e04aba838
-- 0019_game_digest.sql 69ea520093e7a13c858268e5e2e6121b1cc48f521b98c634bf43580fc5a8372a
-- 0020_replays_of_game.sql bc3e605073a6a69339bd74245f016ef523f2ed9aa4d2da2b06811e89df18ad0c
-- 0021_listed_replays_of_player.sql bb5f43c4d8e107bc67281983c48a9fc6ffd865fa6f384dad4867cfef6585eb22
-- 0022_imported_avatars.sql 916c453b93f87e125c887099d9b2378582d50de72704cef8bd53b4c2f7545c3c
-- 0023_imported_kinds.sql 644a242f89c766f593399128785ca30936e87777699a2294f66cc4e5dab0b808
-- 0024_verdicts_that_stay.sql f09375c1ddd60de36cd51da2ed16ab7643a4adce6e3ec7dc1ed93318638877f1
-- 0025_verdicts_without_undo_places.sql 15b3327bc006b5c3f4134e102a75d358bcb6833152525867f27b0d7494370b6f
-- 0026_acts.sql 7e0fef73515b407a5aeabd1ecc3ec16d8aa5e303142e1fa59b211df96b4d0e2d
-- 0027_restrictions.sql 1ddfcab4e5e4e239120520c835455576ee1e57101f34e9f5f95490b043f5fc0e
-- 0028_users_folded.sql b0c3444715b6ab24735a97f9486cada932904b5c4095e4dc031c04e6a60b92ca
-- 0029_recovery.sql 702255176b1a8660f807990850b6c75895e28dced5a06dd7e8efc182384d7a6d
-- 0030_account_history.sql 918b77ffe5473ac54b7a92b6562b0164d3b676f9528e2cd86624b39ef40636fe
-- 0031_admins.sql 0100413332ddf376e53f44f46102707ef54541f3d207f0b1dd00fdfa1526853d
-- 0032_admin_guesses.sql 4e8f5ebc505331ea05b6b571e81dd5a4663e7b5a16472b084ef13b0bb48c7fa0
-- 0033_history_review.sql c6f8763e6c5fa2cedb6026818e2a30197224d936808ce1e1a0b48d7b1ff544af
-- 0034_undo_places.sql e05b8f5485210b986e30e8313d47a0edb167253424bf76ca05ecc9d7d2af3ab8
-- 0035_stored_timelines.sql 512416bed6c9edb5247e6c39dc63d19a16b6d07103cce6bede765cb3b1b87565
-- 0036_evidence_of_classic_games.sql c08cf053b380cf6c1231ae82faaa0c97570aba96eb84fcdbf8a3adfb391fb671
-- 0037_own_evidence.sql 7841ab479721e4525713fd57a772a3b244847f41674d69a024762b9a5e169da1
-- 0038_spare_evidence.sql b56ac3c107e6d3d8c31b07f0605dfb1985d66c2935b8a16aadf36c070c06b713
-- 0039_former_evidence.sql e72b4564e9a25968d9077bf4fb071dca7faba78606f8bd5bed715843fffad7ef
-- 0040_less_evidence.sql 8878c8e6a610ffdd5fb2db4d9fd1b19a0bbe092bec26279f43c8cec50ccde294
-- 0041_ranked_at_once.sql 0028e7b2093a5fc76e73349ce97f907dc7c5c36406ffe973055a8bdbb2f358e8
