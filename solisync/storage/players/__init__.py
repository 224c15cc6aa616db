"""SQL about accounts of players: sessions, progress, entries, restrictions, history, exports."""
