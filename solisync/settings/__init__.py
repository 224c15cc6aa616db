"""Settings: their table, the parsers of their values, and their sources (docs/configuration.md)."""
