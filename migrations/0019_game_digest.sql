-- Which uploads are one: the SHA-256 of a replay that names its game (docs/protocol.md "Replays"). Null where it names none,
-- and in whatever an older node stores.

ALTER TABLE replays ADD COLUMN game_digest bytea;
