-- A refresh that changed the id of a token during 0063 has filled its row; a row that is locked is waited for.
ALTER TABLE refresh_tokens VALIDATE CONSTRAINT refresh_tokens_whole;
