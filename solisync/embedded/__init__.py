"""The embedded PostgreSQL: a server as a child process, its program files and its data directory."""
