-- Whether a player has taken a replay off the public lists: true, or null. A column and not a table of its own, because
-- only with it can an index lead to the newest replays that are listed, however many newer ones are not. Null, without
-- a default: what older nodes store is listed, and they go on showing what is unlisted.

ALTER TABLE replays ADD COLUMN unlisted boolean;
