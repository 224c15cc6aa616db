"""Players beside their requests: the history of accounts, facts for operators, exports of everything."""
