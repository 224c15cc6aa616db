-- An avatar that came from an original server and was removed here stays away when the import is repeated:
-- docs/moving-in.md "Again and again".

ALTER TABLE imported DROP CONSTRAINT imported_kind_check,
    ADD CONSTRAINT imported_kind_check CHECK (kind IN ('user', 'replay', 'refresh', 'event', 'avatar')) NOT VALID;

-- What an earlier import has brought, as far as it is still there.
INSERT INTO imported (kind, id)
SELECT 'avatar', id FROM imported JOIN avatars ON user_id = id WHERE kind = 'user';
