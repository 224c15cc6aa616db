-- Fewer dead rows: the first evidence of a player on a board is inserted as ranked. Inserting it as a spare and ranking it
-- then left a dead row, and dead entries in three indexes.
CREATE OR REPLACE FUNCTION place_replay(replay uuid, player uuid) RETURNS void LANGUAGE plpgsql AS $$
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
