"""Live events: what processes tell each other, and the streams on which players hear of it (docs/live.md)."""
