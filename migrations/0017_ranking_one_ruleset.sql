-- Boards rank games of the preferred ruleset alone, whose scores have a bound; docs/verification.md "Boards" says why. And
-- searches are shared more fairly: docs/verification.md "How replays get checked".

-- As in 0014, but for the condition on the ruleset. Here and not in the service, so that nodes of older versions obey it.
-- Evidence that is there already stays until the service takes it away, player by player.
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
        INSERT INTO board_evidence (board, user_id, deficit, received_at, replay_id, ranked)
        SELECT board, player, -score, received_at, replay, false
        FROM replays JOIN verdicts ON replay_id = id CROSS JOIN unnest(boards) AS board
        WHERE id = replay AND status = 'verified' AND ruleset = '2026-05-19' AND (unlisted IS NULL OR board = 'own')
        RETURNING board
    )
    SELECT array_agg(board) INTO placed FROM new;
    PERFORM rank_player(player, former || placed);
END
$$;

-- Searches that have ended within the last hour; housekeeping deletes older rows. UNLOGGED: losing it in a crash costs
-- fairness alone, for an hour.
CREATE UNLOGGED TABLE recent_searches (
    user_id  uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    ended_at timestamptz NOT NULL
);
CREATE INDEX recent_searches_player ON recent_searches (user_id, ended_at);
CREATE INDEX recent_searches_ended ON recent_searches (ended_at);

-- A trigger, so that the searches of older nodes count as well, and those whose replays are deleted. Searches of old
-- replays, which nobody has asked for, don't count; nor do those of a player who is being deleted, whose row is gone by
-- then.
CREATE FUNCTION remember_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO recent_searches (user_id, ended_at) SELECT id, clock_timestamp() FROM users WHERE id = OLD.user_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER search_ended AFTER DELETE ON replay_checks FOR EACH ROW
    WHEN (OLD.search AND OLD.attempts > 0 AND OLD.ahead < 1000000) EXECUTE FUNCTION remember_search();

-- As in 0013, but for the searches of the last hour, and for accounts younger than a day, whose searches come after those
-- of all others. Counting ends at 250 all the same.
CREATE OR REPLACE FUNCTION checks_ahead(player uuid, searches boolean, received_at timestamptz) RETURNS int
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
