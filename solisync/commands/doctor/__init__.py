"""`solisync doctor`: checks of settings, host, database and capacity (docs/administration.md)."""
