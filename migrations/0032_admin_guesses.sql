-- How often somebody has signed in with another code than this one, which counts no more after too many of these, from
-- whatever addresses: docs/console.md "Signing in". A newer code begins at zero.
ALTER TABLE admin_codes ADD COLUMN refused int NOT NULL DEFAULT 0;
