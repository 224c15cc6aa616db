-- For statements that run as EXECUTE: they take their snapshot before they wait for a table's lock, so after somebody's
-- ALTER TABLE that rewrote the table they find no row where there is one. Whatever relies on what it has read counts the
-- rows it has written, and with any other number than one the transaction fails and is run again.

CREATE FUNCTION exactly_one(written bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF written <> 1 THEN
        RAISE EXCEPTION 'the database has not the row that was read, or has one that was not'
            USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN true;
END
$$;
