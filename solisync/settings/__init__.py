"""Settings: their table, the parsers of their text, and where they are read from (docs/configuration.md)."""
