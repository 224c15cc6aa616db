-- The schema as it is after all migrations. `make schema` writes this file, which is only for reading.
-- docs/architecture.md, "What the database decides", says what the functions and triggers are for.


CREATE FUNCTION boards_of_rows(boards text[]) RETURNS text[]
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE WHEN 'own' = ANY (boards) THEN boards || ARRAY['classic', 'classic/DrawOne', 'classic/DrawThree']
        ELSE boards END
$$;

CREATE FUNCTION checks_ahead(player uuid, searches boolean, received_at timestamp with time zone) RETURNS integer
    LANGUAGE sql STABLE
    AS $$
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

CREATE FUNCTION count_replay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION displace_replay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION enqueue_replay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO replay_checks (replay_id, user_id, received_at, ahead)
    VALUES (NEW.id, NEW.user_id, NEW.received_at, checks_ahead(NEW.user_id, false, NEW.received_at));
    RETURN NULL;
END
$$;

CREATE FUNCTION exactly_one(written bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF written <> 1 THEN
        RAISE EXCEPTION 'the database has not the row that was read, or has one that was not'
            USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN true;
END
$$;

CREATE FUNCTION forget_cut() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.password_cut := NULL;
    RETURN NEW;
END
$$;

CREATE FUNCTION forget_reset_token() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM reset_tokens WHERE user_id = NEW.id;
    RETURN NULL;
END
$$;

CREATE FUNCTION forget_states() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION hold_upload() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM profile_locks WHERE user_id = NEW.user_id) THEN
        NEW.held := true;
        NEW.unlisted := true;
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION issue_above_cutoff() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION keep_unlisted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.unlisted := true;
    RETURN NEW;
END
$$;

CREATE FUNCTION old_check(received_at timestamp with time zone) RETURNS integer
    LANGUAGE sql STABLE
    AS $$
    SELECT 1000000 + least(greatest(extract(epoch FROM now() - received_at), 0), 2000000000)::int
$$;

CREATE FUNCTION place_checked_replay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM place_replay(id, user_id) FROM replays WHERE id = NEW.replay_id;
    RETURN NULL;
END
$$;

CREATE FUNCTION place_replay(replay uuid, player uuid) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION place_unlisted_replay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM place_replay(NEW.id, NEW.user_id);
    RETURN NULL;
END
$$;

CREATE FUNCTION raise_restriction_number() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO restriction_number AS known (number) VALUES (1 + floor(random() * 1000000)::bigint)
    ON CONFLICT (id) DO UPDATE SET number = known.number + excluded.number;
    RETURN NULL;
END
$$;

CREATE FUNCTION rank_player(player uuid, changed text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION rank_whoever_opts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'the record of acts can''t be changed' USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE FUNCTION refuse_session() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN CASE WHEN EXISTS (SELECT FROM suspensions WHERE user_id = NEW.user_id) THEN NULL ELSE NEW END;
END
$$;

CREATE FUNCTION remember_answer(player uuid, expiry bigint, answer text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION remember_for_all(player uuid, told text[]) RETURNS void
    LANGUAGE sql
    AS $$
    SELECT remember_states(session_id, player, told) FROM (
        SELECT session_id FROM refresh_tokens
        WHERE user_id = player AND session_id IS NOT NULL AND expires_at > clock_timestamp() ORDER BY session_id
    ) AS live
$$;

CREATE FUNCTION remember_foreign(player uuid, expiry bigint, answer text, digest text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN
        RETURN;
    END IF;
    UPDATE sync_states SET counted = answer
    WHERE user_id = player AND counted IS NULL AND encode(sha256(convert_to(payload, 'UTF8')), 'hex') = digest;
    PERFORM remember_answer(player, expiry, answer);
END
$$;

CREATE FUNCTION remember_search() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO recent_searches (user_id, ended_at) SELECT id, clock_timestamp() FROM users WHERE id = OLD.user_id;
    RETURN NULL;
END
$$;

CREATE FUNCTION remember_states(session uuid, player uuid, told text[]) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO known_states AS known (session_id, user_id, answers) VALUES (session, player, told)
    ON CONFLICT (session_id) DO UPDATE SET
        pushed = CASE WHEN cardinality(known.answers || told) <= 16 THEN known.pushed END,
        answers = CASE WHEN cardinality(known.answers || told) <= 16 THEN known.answers END || told
    WHERE NOT told <@ known.answers
$$;

CREATE FUNCTION replay_charge(size integer) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $$SELECT greatest(size, 4096)::bigint$$;

CREATE FUNCTION restrict_entry() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION unrank(player uuid, boards text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM board_evidence AS place
    WHERE user_id = player AND board = ANY (boards) AND ranked AND board LIKE 'classic%' AND EXISTS (
        SELECT FROM board_evidence AS own
        WHERE own.replay_id = place.replay_id AND own.board = 'own' AND classic IS NOT NULL
    );
    UPDATE board_evidence SET ranked = false WHERE user_id = player AND board = ANY (boards) AND ranked;
END
$$;

CREATE FUNCTION with_access_expiry(taken bigint[], wanted bigint) RETURNS bigint[]
    LANGUAGE plpgsql
    AS $$
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

CREATE TABLE access_cutoffs (
    user_id uuid NOT NULL,
    cutoff bigint NOT NULL
);

CREATE TABLE account_history (
    id bigint NOT NULL,
    happened_at timestamp with time zone NOT NULL,
    user_id uuid,
    event text NOT NULL COLLATE pg_catalog."C",
    reason text COLLATE pg_catalog."C",
    client text COLLATE pg_catalog."C",
    times integer NOT NULL
);

ALTER TABLE account_history ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME account_history_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE admin_acts (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    actor_kind text NOT NULL,
    actor text NOT NULL,
    act text NOT NULL,
    target text NOT NULL,
    reason text,
    client text,
    request_id text,
    CONSTRAINT admin_acts_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['admin'::text, 'shell'::text, 'service'::text]))),
    CONSTRAINT admin_acts_reason_check CHECK ((reason = ANY (ARRAY['name'::text, 'avatar'::text, 'cheating'::text, 'spam'::text, 'takeover'::text, 'request'::text, 'legal'::text, 'other'::text]))),
    CONSTRAINT admin_acts_target_check CHECK ((target = ANY (ARRAY['player'::text, 'replay'::text])))
);

ALTER TABLE admin_acts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME admin_acts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE admin_codes (
    admin text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    refused integer DEFAULT 0 NOT NULL
);

CREATE TABLE admin_notes (
    act_id bigint NOT NULL,
    user_id uuid NOT NULL,
    replay_id uuid,
    note text,
    before text,
    after text
);

CREATE TABLE admin_sessions (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    admin text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone NOT NULL,
    client text NOT NULL,
    user_agent text
);

CREATE TABLE admins (
    name text NOT NULL COLLATE pg_catalog."C",
    added_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE analytics_events (
    id uuid NOT NULL,
    session_id text NOT NULL,
    name_id bigint,
    event_type text NOT NULL,
    payload text NOT NULL,
    client_time timestamp with time zone NOT NULL,
    received_at timestamp with time zone NOT NULL
);

CREATE TABLE analytics_names (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    seen_on date NOT NULL
);

ALTER TABLE analytics_names ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME analytics_names_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE avatars (
    user_id uuid NOT NULL,
    image bytea NOT NULL,
    etag text GENERATED ALWAYS AS ((('"'::text || encode(sha256(image), 'hex'::text)) || '"'::text)) STORED NOT NULL
);
ALTER TABLE ONLY avatars ALTER COLUMN image SET STORAGE EXTERNAL;

CREATE TABLE board_evidence (
    board text NOT NULL COLLATE pg_catalog."C",
    user_id uuid NOT NULL,
    deficit integer NOT NULL,
    received_at timestamp with time zone NOT NULL,
    replay_id uuid NOT NULL,
    ranked boolean NOT NULL,
    classic text
);

CREATE TABLE imported (
    kind text NOT NULL COLLATE pg_catalog."C",
    id uuid NOT NULL,
    CONSTRAINT imported_kind_check CHECK ((kind = ANY (ARRAY['user'::text, 'replay'::text, 'refresh'::text, 'event'::text, 'avatar'::text])))
);

CREATE UNLOGGED TABLE known_states (
    session_id uuid NOT NULL,
    user_id uuid NOT NULL,
    pushed text,
    answers text[] NOT NULL
);

CREATE TABLE leaderboard (
    user_id uuid NOT NULL,
    display_name text NOT NULL,
    best_score integer,
    best_time_secs integer,
    recorded_at timestamp with time zone NOT NULL,
    visible boolean NOT NULL,
    CONSTRAINT leaderboard_best_score_check CHECK ((best_score > 0)),
    CONSTRAINT leaderboard_best_time_secs_check CHECK ((best_time_secs > 0))
);

CREATE TABLE profile_locks (
    user_id uuid NOT NULL,
    since timestamp with time zone NOT NULL
);

CREATE UNLOGGED TABLE rate_limits (
    bucket text NOT NULL COLLATE pg_catalog."C",
    hits timestamp with time zone[] NOT NULL,
    admitted boolean NOT NULL
);

CREATE UNLOGGED TABLE recent_searches (
    user_id uuid NOT NULL,
    ended_at timestamp with time zone NOT NULL
);

CREATE TABLE recovery_codes (
    user_id uuid NOT NULL,
    digest bytea NOT NULL,
    made_at timestamp with time zone NOT NULL
);

CREATE TABLE refresh_tokens (
    jti uuid NOT NULL,
    user_id uuid NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    session_id uuid,
    begun_at timestamp with time zone,
    used_at timestamp with time zone,
    user_agent text,
    access_expiry bigint
);

CREATE TABLE replay_checks (
    replay_id uuid NOT NULL,
    user_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    search boolean DEFAULT false NOT NULL,
    ahead integer NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    claimed_until timestamp with time zone
);

CREATE TABLE replay_sweep (
    id integer DEFAULT 1 NOT NULL,
    received_at timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    replay_id uuid DEFAULT 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid NOT NULL,
    checked_before timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT replay_sweep_id_check CHECK ((id = 1))
);

CREATE TABLE replay_usage (
    user_id uuid NOT NULL,
    used_bytes bigint NOT NULL
);

CREATE TABLE replays (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    body text NOT NULL,
    size integer NOT NULL,
    mode text NOT NULL,
    draw_mode text NOT NULL,
    final_score text NOT NULL,
    time_seconds text NOT NULL,
    seed text,
    recorded_at text NOT NULL,
    unlisted boolean,
    game_digest bytea,
    held boolean
);

CREATE TABLE reset_tokens (
    user_id uuid NOT NULL,
    digest bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE restriction_number (
    id integer DEFAULT 1 NOT NULL,
    number bigint NOT NULL,
    CONSTRAINT restriction_number_id_check CHECK ((id = 1))
);

CREATE TABLE suspensions (
    user_id uuid NOT NULL,
    since timestamp with time zone NOT NULL,
    until timestamp with time zone,
    message text,
    was_visible boolean NOT NULL
);

CREATE TABLE sync_states (
    user_id uuid NOT NULL,
    payload text NOT NULL,
    revision bigint,
    counted text
);

CREATE TABLE users (
    id uuid NOT NULL,
    username text NOT NULL COLLATE pg_catalog."C",
    password_hash text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    avatar_extension text,
    access_expiries bigint[],
    password_cut boolean,
    CONSTRAINT users_avatar_extension_check CHECK ((avatar_extension = ANY (ARRAY['jpg'::text, 'png'::text, 'webp'::text, 'gif'::text])))
);

CREATE TABLE verdicts (
    replay_id uuid NOT NULL,
    status text NOT NULL,
    reason text,
    ruleset text,
    undos integer,
    score integer,
    moves integer,
    checked_at timestamp with time zone NOT NULL,
    engine integer NOT NULL,
    timeline bytea,
    timeline_etag text GENERATED ALWAYS AS ((('"'::text || encode(sha256(timeline), 'hex'::text)) || '"'::text)) STORED,
    boards text[],
    undo_places smallint[],
    timeline_digest bytea,
    CONSTRAINT verdicts_check CHECK (((status = 'verified'::text) = (num_nulls(ruleset, undos, score, moves) = 0))),
    CONSTRAINT verdicts_status_check CHECK ((status = ANY (ARRAY['verified'::text, 'refuted'::text, 'undecided'::text, 'unreadable'::text])))
);
ALTER TABLE ONLY verdicts ALTER COLUMN timeline SET STORAGE EXTERNAL;

ALTER TABLE ONLY access_cutoffs
    ADD CONSTRAINT access_cutoffs_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY account_history
    ADD CONSTRAINT account_history_pkey PRIMARY KEY (id);

ALTER TABLE ONLY admin_acts
    ADD CONSTRAINT admin_acts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY admin_codes
    ADD CONSTRAINT admin_codes_pkey PRIMARY KEY (admin);

ALTER TABLE ONLY admin_notes
    ADD CONSTRAINT admin_notes_pkey PRIMARY KEY (act_id);

ALTER TABLE ONLY admin_sessions
    ADD CONSTRAINT admin_sessions_digest_key UNIQUE (digest);

ALTER TABLE ONLY admin_sessions
    ADD CONSTRAINT admin_sessions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY admins
    ADD CONSTRAINT admins_pkey PRIMARY KEY (name);

ALTER TABLE ONLY analytics_events
    ADD CONSTRAINT analytics_events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY analytics_names
    ADD CONSTRAINT analytics_names_name_key UNIQUE (name);

ALTER TABLE ONLY analytics_names
    ADD CONSTRAINT analytics_names_pkey PRIMARY KEY (id);

ALTER TABLE ONLY avatars
    ADD CONSTRAINT avatars_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY board_evidence
    ADD CONSTRAINT board_evidence_pkey PRIMARY KEY (replay_id, board);

ALTER TABLE ONLY imported
    ADD CONSTRAINT imported_pkey PRIMARY KEY (kind, id);

ALTER TABLE ONLY known_states
    ADD CONSTRAINT known_states_pkey PRIMARY KEY (session_id);

ALTER TABLE ONLY leaderboard
    ADD CONSTRAINT leaderboard_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY profile_locks
    ADD CONSTRAINT profile_locks_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY rate_limits
    ADD CONSTRAINT rate_limits_pkey PRIMARY KEY (bucket);

ALTER TABLE ONLY recovery_codes
    ADD CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, digest);

ALTER TABLE ONLY refresh_tokens
    ADD CONSTRAINT refresh_tokens_pkey PRIMARY KEY (jti);

ALTER TABLE ONLY replay_checks
    ADD CONSTRAINT replay_checks_pkey PRIMARY KEY (replay_id);

ALTER TABLE ONLY replay_sweep
    ADD CONSTRAINT replay_sweep_pkey PRIMARY KEY (id);

ALTER TABLE ONLY replay_usage
    ADD CONSTRAINT replay_usage_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY replays
    ADD CONSTRAINT replays_pkey PRIMARY KEY (id);

ALTER TABLE ONLY reset_tokens
    ADD CONSTRAINT reset_tokens_digest_key UNIQUE (digest);

ALTER TABLE ONLY reset_tokens
    ADD CONSTRAINT reset_tokens_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY restriction_number
    ADD CONSTRAINT restriction_number_pkey PRIMARY KEY (id);

ALTER TABLE ONLY suspensions
    ADD CONSTRAINT suspensions_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY sync_states
    ADD CONSTRAINT sync_states_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE ONLY users
    ADD CONSTRAINT users_username_key UNIQUE (username);

ALTER TABLE ONLY verdicts
    ADD CONSTRAINT verdicts_pkey PRIMARY KEY (replay_id);

CREATE INDEX account_history_client ON account_history USING btree (client, id) WHERE (client IS NOT NULL);

CREATE INDEX account_history_review ON account_history USING btree (event, id) WHERE (event = ANY (ARRAY['register'::text, 'opted in'::text, 'avatar changed'::text]));

CREATE INDEX account_history_user ON account_history USING btree (user_id, id) WHERE (user_id IS NOT NULL);

CREATE INDEX admin_notes_player ON admin_notes USING btree (user_id, act_id);

CREATE INDEX admin_sessions_admin ON admin_sessions USING btree (admin);

CREATE INDEX analytics_events_of_name ON analytics_events USING btree (name_id, received_at, id) WHERE (name_id IS NOT NULL);

CREATE INDEX analytics_events_received ON analytics_events USING btree (received_at);

CREATE INDEX analytics_names_seen ON analytics_names USING btree (seen_on);

CREATE INDEX board_evidence_former ON board_evidence USING btree (user_id, replay_id) WHERE ((NOT ranked) AND (board = ANY (ARRAY['classic'::text, 'classic/DrawOne'::text, 'classic/DrawThree'::text])));

CREATE INDEX board_evidence_own ON board_evidence USING btree (user_id, deficit, classic, received_at, replay_id) WHERE (board = 'own'::text);

CREATE UNIQUE INDEX board_evidence_place ON board_evidence USING btree (user_id, board) WHERE ranked;

CREATE INDEX board_evidence_ranking ON board_evidence USING btree (board, deficit, received_at, replay_id) WHERE ranked;

CREATE INDEX board_evidence_spare ON board_evidence USING btree (user_id, board, deficit, received_at, replay_id) WHERE ((NOT ranked) AND (board <> 'own'::text));

CREATE INDEX known_states_user ON known_states USING btree (user_id);

CREATE INDEX leaderboard_ranking ON leaderboard USING btree (best_score DESC NULLS LAST, best_time_secs, recorded_at, user_id) WHERE visible;

CREATE INDEX recent_searches_ended ON recent_searches USING btree (ended_at);

CREATE INDEX recent_searches_player ON recent_searches USING btree (user_id, ended_at);

CREATE INDEX refresh_tokens_expiry ON refresh_tokens USING btree (expires_at);

CREATE INDEX refresh_tokens_user ON refresh_tokens USING btree (user_id);

CREATE INDEX replay_checks_order ON replay_checks USING btree (search, ahead, received_at, replay_id);

CREATE INDEX replay_checks_player ON replay_checks USING btree (user_id, search);

CREATE INDEX replays_listed ON replays USING btree (unlisted, received_at DESC, id DESC) WHERE (unlisted IS NULL);

CREATE INDEX replays_listed_of_player ON replays USING btree (user_id, received_at, id) WHERE (unlisted IS NULL);

CREATE INDEX replays_of_game ON replays USING btree (user_id, game_digest) WHERE (game_digest IS NOT NULL);

CREATE INDEX replays_of_player ON replays USING btree (user_id, received_at, id);

CREATE INDEX replays_recent ON replays USING btree (received_at DESC, id DESC);

CREATE INDEX replays_user ON replays USING btree (user_id) INCLUDE (size);

CREATE INDEX suspensions_until ON suspensions USING btree (until) WHERE (until IS NOT NULL);

CREATE INDEX users_folded ON users USING btree (lower(username));

CREATE INDEX verdicts_not_verified ON verdicts USING btree (engine) WHERE (status <> 'verified'::text);

CREATE INDEX verdicts_older_ruleset ON verdicts USING btree (engine, replay_id) WHERE (ruleset <> '2026-05-19'::text);

CREATE INDEX verdicts_with_timeline ON verdicts USING btree (replay_id) WHERE (timeline IS NOT NULL);

CREATE INDEX verdicts_without_undo_places ON verdicts USING btree (replay_id) WHERE ((ruleset = '2026-05-19'::text) AND (engine < 2));

CREATE TRIGGER access_issued BEFORE UPDATE OF access_expiries ON users FOR EACH ROW EXECUTE FUNCTION issue_above_cutoff();

CREATE TRIGGER acts_kept BEFORE DELETE OR UPDATE OR TRUNCATE ON admin_acts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER cutoff_changed AFTER INSERT OR DELETE OR UPDATE ON access_cutoffs FOR EACH ROW EXECUTE FUNCTION raise_restriction_number();

CREATE TRIGGER entry_restricted BEFORE INSERT OR UPDATE OF visible, display_name ON leaderboard FOR EACH ROW EXECUTE FUNCTION restrict_entry();

CREATE TRIGGER foreign_delete BEFORE DELETE ON sync_states FOR EACH ROW EXECUTE FUNCTION forget_states();

CREATE TRIGGER foreign_insert BEFORE INSERT ON sync_states FOR EACH ROW WHEN ((new.revision IS NULL)) EXECUTE FUNCTION forget_states();

CREATE TRIGGER foreign_update BEFORE UPDATE ON sync_states FOR EACH ROW WHEN ((NOT (new.revision IS DISTINCT FROM old.revision))) EXECUTE FUNCTION forget_states();

CREATE TRIGGER held_unlisted BEFORE UPDATE OF unlisted ON replays FOR EACH ROW WHEN ((new.held AND (new.unlisted IS NULL))) EXECUTE FUNCTION keep_unlisted();

CREATE TRIGGER password_changed AFTER UPDATE OF password_hash ON users FOR EACH ROW WHEN ((old.password_hash IS DISTINCT FROM new.password_hash)) EXECUTE FUNCTION forget_reset_token();

CREATE TRIGGER password_replaced BEFORE UPDATE OF password_hash ON users FOR EACH ROW WHEN ((old.password_cut AND (new.password_hash IS DISTINCT FROM old.password_hash))) EXECUTE FUNCTION forget_cut();

CREATE TRIGGER player_opted AFTER INSERT ON leaderboard FOR EACH ROW WHEN (new.visible) EXECUTE FUNCTION rank_whoever_opts();

CREATE TRIGGER player_opted_again AFTER UPDATE OF visible ON leaderboard FOR EACH ROW WHEN ((old.visible <> new.visible)) EXECUTE FUNCTION rank_whoever_opts();

CREATE TRIGGER player_removed AFTER DELETE ON leaderboard FOR EACH ROW WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION rank_whoever_opts();

CREATE TRIGGER replay_checked AFTER INSERT OR UPDATE OF status, ruleset, score, boards ON verdicts FOR EACH ROW EXECUTE FUNCTION place_checked_replay();

CREATE TRIGGER replay_deleted AFTER DELETE ON replays FOR EACH ROW WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION count_replay();

CREATE TRIGGER replay_displaced BEFORE DELETE ON replays FOR EACH ROW WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION displace_replay();

CREATE TRIGGER replay_stored AFTER INSERT ON replays FOR EACH ROW EXECUTE FUNCTION count_replay();

CREATE TRIGGER replay_unlisted AFTER UPDATE OF unlisted ON replays FOR EACH ROW WHEN ((old.unlisted IS DISTINCT FROM new.unlisted)) EXECUTE FUNCTION place_unlisted_replay();

CREATE TRIGGER replay_uploaded AFTER INSERT ON replays FOR EACH ROW EXECUTE FUNCTION enqueue_replay();

CREATE TRIGGER search_ended AFTER DELETE ON replay_checks FOR EACH ROW WHEN ((old.search AND (old.attempts > 0) AND (old.ahead < 1000000))) EXECUTE FUNCTION remember_search();

CREATE TRIGGER session_refused BEFORE INSERT ON refresh_tokens FOR EACH ROW EXECUTE FUNCTION refuse_session();

CREATE TRIGGER suspension_changed AFTER INSERT OR DELETE OR UPDATE ON suspensions FOR EACH ROW EXECUTE FUNCTION raise_restriction_number();

CREATE TRIGGER upload_held BEFORE INSERT ON replays FOR EACH ROW EXECUTE FUNCTION hold_upload();

ALTER TABLE ONLY access_cutoffs
    ADD CONSTRAINT access_cutoffs_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY account_history
    ADD CONSTRAINT account_history_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY admin_codes
    ADD CONSTRAINT admin_codes_admin_fkey FOREIGN KEY (admin) REFERENCES admins(name) ON DELETE CASCADE;

ALTER TABLE ONLY admin_notes
    ADD CONSTRAINT admin_notes_act_id_fkey FOREIGN KEY (act_id) REFERENCES admin_acts(id);

ALTER TABLE ONLY admin_notes
    ADD CONSTRAINT admin_notes_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY admin_sessions
    ADD CONSTRAINT admin_sessions_admin_fkey FOREIGN KEY (admin) REFERENCES admins(name) ON DELETE CASCADE;

ALTER TABLE ONLY avatars
    ADD CONSTRAINT avatars_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY board_evidence
    ADD CONSTRAINT board_evidence_replay_id_fkey FOREIGN KEY (replay_id) REFERENCES replays(id) ON DELETE CASCADE;

ALTER TABLE ONLY leaderboard
    ADD CONSTRAINT leaderboard_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY profile_locks
    ADD CONSTRAINT profile_locks_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY recent_searches
    ADD CONSTRAINT recent_searches_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY recovery_codes
    ADD CONSTRAINT recovery_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY refresh_tokens
    ADD CONSTRAINT refresh_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY replay_checks
    ADD CONSTRAINT replay_checks_replay_id_fkey FOREIGN KEY (replay_id) REFERENCES replays(id) ON DELETE CASCADE;

ALTER TABLE ONLY replay_usage
    ADD CONSTRAINT replay_usage_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY replays
    ADD CONSTRAINT replays_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY reset_tokens
    ADD CONSTRAINT reset_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY suspensions
    ADD CONSTRAINT suspensions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY sync_states
    ADD CONSTRAINT sync_states_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

ALTER TABLE ONLY verdicts
    ADD CONSTRAINT verdicts_replay_id_fkey FOREIGN KEY (replay_id) REFERENCES replays(id) ON DELETE CASCADE;

