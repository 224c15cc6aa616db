-- What operators see: docs/verification.md "Evidence", docs/console.md "Review".

-- The most that the moves of a refuted or undecided replay prove, as JSON (solisync/klondike/evidence.py). Null in other
-- rows, and in those of nodes of 1.0.0, whose verdicts this version checks again.
ALTER TABLE verdicts ADD COLUMN proved text;

-- Items of the review lists that an admin has seen. They don't belong to the player: no export has them.
CREATE TABLE review_seen (
    kind    text        COLLATE "C" NOT NULL,
    -- the number of a line of the history, the id of a replay, or the id of a player with a score
    item    text        COLLATE "C" NOT NULL,
    user_id uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    admin   text        COLLATE "C" NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (kind, item)
);
CREATE INDEX review_seen_player ON review_seen (user_id);
CREATE INDEX review_seen_at ON review_seen (seen_at);

-- The number of the player's replays, to list players by it. Null: not counted yet. The next upload or deletion counts
-- them, or housekeeping, which also counts players without a row.
ALTER TABLE replay_usage ADD COLUMN replays int;

-- As before; it keeps the number of replays, too.
CREATE OR REPLACE FUNCTION count_replay() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    player uuid   := CASE TG_OP WHEN 'INSERT' THEN NEW.user_id ELSE OLD.user_id END;
    charge bigint := CASE TG_OP WHEN 'INSERT' THEN replay_charge(NEW.size) ELSE -replay_charge(OLD.size) END;
    change int    := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    -- The first count holds this lock: then this change is in what was counted, or is added to it.
    PERFORM FROM users WHERE id = player FOR NO KEY UPDATE;
    UPDATE replay_usage SET used_bytes = used_bytes + charge,
        replays = coalesce(replays + change, (SELECT count(*) FROM replays WHERE user_id = player))
    WHERE user_id = player;
    RETURN NULL;
END
$$;
