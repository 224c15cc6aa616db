-- Games that clients have sent by their ids: docs/sync.md. A game that is here was counted, and never counts again.
CREATE TABLE games (
    user_id    uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    game_id    uuid        NOT NULL,
    ended_at   timestamptz NOT NULL,
    counted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- what the game added; `mode` without its level
    mode       text        NOT NULL,
    draw_mode  text        NOT NULL,
    won        boolean     NOT NULL,
    score      integer     NOT NULL,
    seconds    integer     NOT NULL,
    xp         integer     NOT NULL,
    PRIMARY KEY (user_id, game_id)
);
CREATE INDEX games_by_end ON games (user_id, ended_at);
CREATE INDEX games_by_count ON games (user_id, counted_at, game_id);

-- The number of a player's games, and the end of the latest one that was forgotten because there were too many.
CREATE TABLE game_memory (
    user_id         uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    games           integer     NOT NULL,
    forgotten_until timestamptz
);

-- Gives a player the games of a joined guest, except those that the player has too, which are deleted with the guest.
-- A trigger, so that joins on nodes of 1.1 move them, too.
CREATE FUNCTION move_games() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved integer;
BEGIN
    UPDATE games SET user_id = NEW.user_id WHERE user_id = NEW.guest_id AND NOT EXISTS (
        SELECT FROM games AS own WHERE own.user_id = NEW.user_id AND own.game_id = games.game_id
    );
    GET DIAGNOSTICS moved = ROW_COUNT;
    INSERT INTO game_memory AS known (user_id, games, forgotten_until)
    SELECT NEW.user_id, moved, forgotten_until FROM game_memory WHERE user_id = NEW.guest_id
    ON CONFLICT (user_id) DO UPDATE SET games = known.games + excluded.games,
        forgotten_until = greatest(known.forgotten_until, excluded.forgotten_until);
    RETURN NULL;
END
$$;
CREATE TRIGGER games_joined AFTER INSERT ON joined_guests FOR EACH ROW EXECUTE FUNCTION move_games();
