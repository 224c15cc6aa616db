"""Checks of uploaded replays in the background, in separate processes (docs/verification.md)."""
