-- concurrently
-- for the lists of what players have lately done that others see, which are read page by page, the newest first
CREATE INDEX CONCURRENTLY account_history_review ON account_history (event, id)
    WHERE event IN ('register', 'opted in', 'avatar changed');
