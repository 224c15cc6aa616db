-- concurrently
-- for housekeeping, which looks for guests without a session, and for the number of guests
CREATE INDEX CONCURRENTLY users_guests ON users (id) WHERE guest;
