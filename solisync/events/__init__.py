"""Live events: notices between processes, and the streams that send events to players (docs/live.md)."""
