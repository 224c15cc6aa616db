"""Moves an original server's database in (docs/moving-in.md): reads its SQLite file, and stores what is new."""
