"""`solisync backup` and `solisync restore` (docs/administration.md)."""
