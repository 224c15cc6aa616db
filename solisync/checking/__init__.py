"""Checking uploaded replays in the background, in processes of their own (docs/verification.md)."""
