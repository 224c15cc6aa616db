"""The import from an original server (docs/moving-in.md): read its SQLite database, and store new rows.

In this package, *there* is the original server, and *here* is this service.
"""
