-- Accounts with more than 17,408 replays, which neither the quota nor a join allows: those of an import, or of another
-- quota. A statement that would hide, show or delete all of their replays takes longer than it may. It leaves a row here
-- instead, and housekeeping follows in batches.
CREATE TABLE large_accounts (
    user_id     uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    -- true: the account is being deleted
    erased      boolean     NOT NULL DEFAULT false,
    -- the last replay that agrees with the suspension of the player
    received_at timestamptz NOT NULL DEFAULT '-infinity',
    replay_id   uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    -- after all replays: the last board that agrees with the visibility of the player's entry
    board       text        COLLATE "C"
);

-- Whether an account is large; then it has a row in large_accounts, and all of its replays are still to do.
CREATE FUNCTION left_for_later(player uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO large_accounts AS waiting (user_id)
    SELECT player WHERE EXISTS (SELECT FROM replays WHERE user_id = player OFFSET 17408)
    ON CONFLICT (user_id) DO UPDATE
        SET received_at = '-infinity', replay_id = '00000000-0000-0000-0000-000000000000', board = NULL;
    RETURN FOUND;
END
$$;

-- As before, but for a large account.
CREATE OR REPLACE FUNCTION withdraw_replays_of_suspended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NOT left_for_later(NEW.user_id) THEN
            DELETE FROM public_replays USING replays
            WHERE user_id = NEW.user_id AND unlisted IS NULL
                AND public_replays.received_at = replays.received_at AND public_replays.id = replays.id;
        END IF;
    ELSIF EXISTS (SELECT FROM users WHERE id = OLD.user_id) AND NOT left_for_later(OLD.user_id) THEN
        INSERT INTO public_replays (received_at, id, verified)
        SELECT received_at, id, is_verified(id) FROM replays
        WHERE user_id = OLD.user_id AND unlisted IS NULL
            AND received_at >= coalesce((SELECT since FROM public_replays_begin), '-infinity')
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;

-- As before, but for a large account.
CREATE OR REPLACE FUNCTION rank_whoever_opts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    player uuid := CASE TG_OP WHEN 'DELETE' THEN OLD.user_id ELSE NEW.user_id END;
BEGIN
    IF left_for_later(player) THEN
        RETURN NULL;
    END IF;
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

-- As before, but while a large account is being deleted.
CREATE OR REPLACE FUNCTION displace_replay() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed text[];
BEGIN
    IF current_setting('solisync.erasing', true) = 'on' THEN
        RETURN OLD;
    END IF;
    PERFORM FROM users WHERE id = OLD.user_id FOR NO KEY UPDATE;
    PERFORM FROM leaderboard WHERE user_id = OLD.user_id FOR SHARE;
    WITH gone AS (DELETE FROM board_evidence WHERE replay_id = OLD.id RETURNING board)
    SELECT array_agg(board) INTO changed FROM gone;
    PERFORM rank_player(OLD.user_id, boards_of_rows(changed));
    RETURN OLD;
END
$$;

-- As before, but while a large account is being deleted.
CREATE OR REPLACE FUNCTION count_replay() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    player uuid   := CASE TG_OP WHEN 'INSERT' THEN NEW.user_id ELSE OLD.user_id END;
    charge bigint := CASE TG_OP WHEN 'INSERT' THEN replay_charge(NEW.size) ELSE -replay_charge(OLD.size) END;
    change int    := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    IF current_setting('solisync.erasing', true) = 'on' THEN
        RETURN NULL;
    END IF;
    -- The first count holds this lock: then this change is in what was counted, or is added to it.
    PERFORM FROM users WHERE id = player FOR NO KEY UPDATE;
    UPDATE replay_usage SET used_bytes = used_bytes + charge,
        replays = coalesce(replays + change, (SELECT count(*) FROM replays WHERE user_id = player))
    WHERE user_id = player;
    RETURN NULL;
END
$$;

-- Does the next part of what is left for later: deletes, hides or shows up to `most` replays, or ranks up to `most`
-- boards. Returns whether anything is left. Of an account that is being deleted, as many replays stay as one statement
-- may delete together with the account.
CREATE FUNCTION settle_large_account(player uuid, most int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    waiting   large_accounts;
    suspended boolean;
    part      text[];
    last      record;
BEGIN
    PERFORM FROM users WHERE id = player FOR NO KEY UPDATE;
    SELECT * INTO waiting FROM large_accounts WHERE user_id = player FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF waiting.erased THEN
        PERFORM set_config('solisync.erasing', 'on', true);
        DELETE FROM replays WHERE id IN (SELECT id FROM replays WHERE user_id = player LIMIT most);
        RETURN EXISTS (SELECT FROM replays WHERE user_id = player OFFSET 17408);
    END IF;
    IF waiting.board IS NULL THEN
        suspended := EXISTS (SELECT FROM suspensions WHERE user_id = player);
        WITH part AS MATERIALIZED (
            SELECT received_at, id FROM replays
            WHERE user_id = player AND unlisted IS NULL AND (received_at, id) > (waiting.received_at, waiting.replay_id)
            ORDER BY received_at, id LIMIT most
        ), hidden AS (
            DELETE FROM public_replays USING part
            WHERE suspended AND public_replays.received_at = part.received_at AND public_replays.id = part.id
        ), listed AS (
            INSERT INTO public_replays (received_at, id, verified)
            SELECT received_at, id, is_verified(id) FROM part
            WHERE NOT suspended AND received_at >= coalesce((SELECT since FROM public_replays_begin), '-infinity')
            ON CONFLICT DO NOTHING
        )
        SELECT received_at, id, (SELECT count(*) FROM part) AS count INTO last
        FROM part ORDER BY received_at DESC, id DESC LIMIT 1;
        UPDATE large_accounts SET received_at = coalesce(last.received_at, large_accounts.received_at),
            replay_id = coalesce(last.id, large_accounts.replay_id),
            board = CASE WHEN coalesce(last.count, 0) < most THEN '' END
        WHERE user_id = player;
        RETURN true;
    END IF;
    part := ARRAY(
        SELECT board FROM (
            (SELECT DISTINCT board FROM board_evidence WHERE user_id = player AND ranked AND board > waiting.board
            ORDER BY board LIMIT most)
            UNION
            (SELECT DISTINCT board FROM board_evidence
            WHERE user_id = player AND NOT ranked AND board <> 'own' AND board > waiting.board
            ORDER BY board LIMIT most)
        ) AS boards ORDER BY board LIMIT most
    );
    IF cardinality(part) = 0 THEN
        PERFORM rank_player(player, ARRAY['classic', 'classic/DrawOne', 'classic/DrawThree']);
        DELETE FROM large_accounts WHERE user_id = player;
        RETURN false;
    END IF;
    PERFORM unrank(player, part);
    IF EXISTS (SELECT FROM (SELECT visible FROM leaderboard WHERE user_id = player FOR SHARE) AS entry WHERE visible) THEN
        UPDATE board_evidence AS evidence SET ranked = true
        FROM (
            SELECT DISTINCT ON (board) board, replay_id FROM board_evidence
            WHERE user_id = player AND NOT ranked AND board <> 'own' AND board = ANY (part)
            ORDER BY board, deficit, received_at, replay_id
        ) AS best
        WHERE evidence.replay_id = best.replay_id AND evidence.board = best.board;
    END IF;
    UPDATE large_accounts SET board = part[cardinality(part)] WHERE user_id = player;
    RETURN true;
END
$$;
