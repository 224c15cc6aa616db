-- Version 1.0.0 accepts any number of digits of a second in `recorded_at`, up to a megabyte, and each list that has such
-- a replay reads all of them. Ten digits and the offset stay: the service shows a time of ten digits as an instant.
CREATE FUNCTION short_time(spelled text) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT left(spelled, 30) || substring(right(spelled, 6) FROM '[Zz]$|[+-].....$') $$;

-- Before the trigger, whose lock keeps uploads waiting: lists shorten what is stored in between.
UPDATE replays SET recorded_at = short_time(recorded_at) WHERE octet_length(recorded_at) > 35;

-- Shortens the time of a replay that a node of 1.0.0 stores.
CREATE FUNCTION shorten_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.recorded_at := short_time(NEW.recorded_at);
    RETURN NEW;
END
$$;
CREATE TRIGGER replay_time_shortened BEFORE INSERT ON replays FOR EACH ROW WHEN (octet_length(NEW.recorded_at) > 35)
EXECUTE FUNCTION shorten_time();
