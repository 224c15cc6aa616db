"""The import from an original server (docs/moving-in.md): read its SQLite database, and store new rows."""
