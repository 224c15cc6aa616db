-- What is ranked is found by three small indexes now, each row in one of them. Evidence goes with its replay, which goes
-- with its player: a second foreign key would need an index on user_id of all rows.
DROP INDEX board_evidence_player;
ALTER TABLE board_evidence DROP CONSTRAINT board_evidence_user_id_fkey;

-- Takes the rank off a player's rows on some boards. On the boards of mode Classic the row goes, if that of 'own' can
-- bring it back, which rows from before migrations/0036 can't.
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

-- Ranks the best evidence of a player on some of their boards, or none if they have not opted in. The board 'own' has all
-- that a player has verified in mode Classic, unlisted replays too; nobody is ranked there.
CREATE OR REPLACE FUNCTION rank_player(player uuid, changed text[]) RETURNS void LANGUAGE plpgsql AS $$
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

-- Which boards lose or gain something with these rows.
CREATE FUNCTION boards_of_rows(boards text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN 'own' = ANY (boards) THEN boards || ARRAY['classic', 'classic/DrawOne', 'classic/DrawThree']
        ELSE boards END
$$;

-- Brings the evidence of a replay up to its verdict and to whether it is listed. In `boards` of a verdict, only those of
-- days count: the others follow from the replay.
CREATE OR REPLACE FUNCTION place_replay(replay uuid, player uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    former text[];
    placed text[];
BEGIN
    PERFORM FROM users WHERE id = player FOR NO KEY UPDATE;
    PERFORM FROM leaderboard WHERE user_id = player FOR SHARE;
    WITH gone AS (DELETE FROM board_evidence WHERE replay_id = replay RETURNING board)
    SELECT array_agg(board) INTO former FROM gone;
    WITH new AS (
        INSERT INTO board_evidence (board, user_id, deficit, received_at, replay_id, ranked, classic)
        SELECT board, player, -score, received_at, replay, false,
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

CREATE OR REPLACE FUNCTION displace_replay() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION rank_whoever_opts() RETURNS trigger LANGUAGE plpgsql AS $$
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
