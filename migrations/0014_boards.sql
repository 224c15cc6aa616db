-- Boards of verified replays: docs/verification.md "Boards". Each verified replay is evidence on some boards; on each of
-- them the best of a player who has opted in is ranked. Triggers keep that, so whatever deletes, unlists or checks again,
-- and whoever opts in or out, an older node too, corrects every board in the same transaction.

-- Names of the boards a replay belongs to, as the check has found; null unless it is verified.
ALTER TABLE verdicts ADD COLUMN boards text[];

CREATE TABLE board_evidence (
    board       text        COLLATE "C" NOT NULL,
    user_id     uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    deficit     int         NOT NULL,  -- minus the score, so that the whole order of a board ascends
    received_at timestamptz NOT NULL,
    replay_id   uuid        NOT NULL REFERENCES replays ON DELETE CASCADE,
    ranked      boolean     NOT NULL,
    PRIMARY KEY (replay_id, board)
);

-- for the best of a player on a board
CREATE INDEX board_evidence_player ON board_evidence (user_id, board, deficit, received_at, replay_id);
-- for the place of a player on a board, of which there is one
CREATE UNIQUE INDEX board_evidence_place ON board_evidence (user_id, board) WHERE ranked;
-- exactly the order of the boards
CREATE INDEX board_evidence_ranking ON board_evidence (board, deficit, received_at, replay_id) WHERE ranked;

-- Ranks the best evidence of a player on some of their boards, or none if they have not opted in. The board 'own' has all
-- that a player has verified in mode Classic, unlisted replays too; nobody is ranked there.
CREATE FUNCTION rank_player(player uuid, changed text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    -- shared, because a node of an older version opts out without the lock of the player's row
    opted_in boolean := EXISTS (
        SELECT FROM (SELECT visible FROM leaderboard WHERE user_id = player FOR SHARE) AS entry WHERE visible
    );
BEGIN
    -- two statements, because a player must not have two places for a moment
    UPDATE board_evidence AS former SET ranked = false
    WHERE user_id = player AND ranked AND board = ANY (changed) AND (NOT opted_in OR replay_id <> (
        SELECT replay_id FROM board_evidence WHERE user_id = player AND board = former.board
        ORDER BY deficit, received_at, replay_id LIMIT 1
    ));
    UPDATE board_evidence AS best SET ranked = true
    FROM unnest(changed) AS name
    WHERE opted_in AND name <> 'own' AND NOT ranked AND user_id = player AND board = name AND replay_id = (
        SELECT replay_id FROM board_evidence WHERE user_id = player AND board = name
        ORDER BY deficit, received_at, replay_id LIMIT 1
    );
END
$$;

-- Brings the evidence of a replay up to its verdict and to whether it is listed.
CREATE FUNCTION place_replay(replay uuid, player uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    former text[];
    placed text[];
BEGIN
    PERFORM FROM users WHERE id = player FOR NO KEY UPDATE;
    PERFORM FROM leaderboard WHERE user_id = player FOR SHARE;
    WITH gone AS (DELETE FROM board_evidence WHERE replay_id = replay RETURNING board)
    SELECT array_agg(board) INTO former FROM gone;
    WITH new AS (
        INSERT INTO board_evidence (board, user_id, deficit, received_at, replay_id, ranked)
        SELECT board, player, -score, received_at, replay, false
        FROM replays JOIN verdicts ON replay_id = id CROSS JOIN unnest(boards) AS board
        WHERE id = replay AND status = 'verified' AND (unlisted IS NULL OR board = 'own')
        RETURNING board
    )
    SELECT array_agg(board) INTO placed FROM new;
    PERFORM rank_player(player, former || placed);
END
$$;

CREATE FUNCTION place_checked_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM place_replay(id, user_id) FROM replays WHERE id = NEW.replay_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER replay_checked AFTER INSERT OR UPDATE ON verdicts FOR EACH ROW EXECUTE FUNCTION place_checked_replay();

CREATE FUNCTION place_unlisted_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM place_replay(NEW.id, NEW.user_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER replay_unlisted AFTER UPDATE OF unlisted ON replays FOR EACH ROW
    WHEN (OLD.unlisted IS DISTINCT FROM NEW.unlisted) EXECUTE FUNCTION place_unlisted_replay();

-- Before the evidence is gone by cascade; not when the player is deleted, with whom all of it goes.
CREATE FUNCTION displace_replay() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed text[];
BEGIN
    PERFORM FROM users WHERE id = OLD.user_id FOR NO KEY UPDATE;
    PERFORM FROM leaderboard WHERE user_id = OLD.user_id FOR SHARE;
    WITH gone AS (DELETE FROM board_evidence WHERE replay_id = OLD.id RETURNING board)
    SELECT array_agg(board) INTO changed FROM gone;
    PERFORM rank_player(OLD.user_id, changed);
    RETURN OLD;
END
$$;
CREATE TRIGGER replay_displaced BEFORE DELETE ON replays FOR EACH ROW WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION displace_replay();

CREATE FUNCTION rank_whoever_opts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    player uuid := CASE TG_OP WHEN 'DELETE' THEN OLD.user_id ELSE NEW.user_id END;
BEGIN
    UPDATE board_evidence SET ranked = false WHERE user_id = player AND ranked;
    IF TG_OP <> 'DELETE' AND NEW.visible THEN
        UPDATE board_evidence AS evidence SET ranked = true
        FROM (
            SELECT DISTINCT ON (board) board, replay_id FROM board_evidence
            WHERE user_id = player AND board <> 'own'
            ORDER BY board, deficit, received_at, replay_id
        ) AS best
        WHERE evidence.replay_id = best.replay_id AND evidence.board = best.board;
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
